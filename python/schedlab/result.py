# SPDX-License-Identifier: MIT OR Apache-2.0
"""The result of a simulation, of a run on this machine, or of a trace."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from . import _core
from .timeline import svg


@dataclass(frozen=True)
class Warning:
    """Something that may distort a result."""

    code: str
    """Short name for programs."""
    text: str
    """Cause, consequence, next step."""


@dataclass(frozen=True)
class Digest:
    """SHA-256 of a run. Equal runs have equal digests on every machine."""

    result: str
    """Of the text that ``schedlab sim --json`` prints."""
    events: str
    """Of the file that ``schedlab sim --trace FILE.slt`` writes."""


class Result:
    """The result of :func:`simulate`, :func:`run` or :func:`analyse`: measures, warnings, and what
    was kept.

    In a notebook it shows its measures, and the timeline if slices are kept.
    """

    def __init__(self, outcome: _core.Outcome, request: dict[str, Any]) -> None:
        self._outcome = outcome
        self.request = request
        """The request as data; of a run or a trace ``{"command": [...]}``."""

    @property
    def json(self) -> str:
        """The text that the command line prints with ``--json``."""
        return self._outcome.result_json

    @cached_property
    def data(self) -> dict[str, Any]:
        """The result as data, in the published form (``schedlab schema result``)."""
        return json.loads(self._outcome.result_json)

    @property
    def scheduler(self) -> str:
        """Name of the scheduler."""
        return self.data["scheduler"]

    @property
    def workload(self) -> str:
        """Name of the workload."""
        return self.data["workload"]

    @property
    def totals(self) -> dict[str, Any]:
        """Measures of the whole run, by name. Names that end in ``_ns`` are nanoseconds."""
        return self.data["measures"]["totals"]

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """Measures of each task, by name. Names that end in ``_ns`` are nanoseconds."""
        return self.data["measures"]["tasks"]

    @property
    def warnings(self) -> list[Warning]:
        """What may distort the result."""
        return [Warning(found["code"], found["text"]) for found in self.data["warnings"]]

    @property
    def notes(self) -> list[str]:
        """Remarks that the command line prints on stderr."""
        return self._outcome.notes

    @property
    def expectations(self) -> list[dict[str, Any]]:
        """What the workload expects, with the values found."""
        return self.data.get("expectations", [])

    @property
    def holds(self) -> bool:
        """Whether every expectation of the workload holds."""
        return all(expected["holds"] for expected in self.expectations)

    @property
    def end_ns(self) -> int:
        """End of the run (ns)."""
        return self._outcome.end_ns

    @property
    def names(self) -> list[str]:
        """Names of the tasks, by number."""
        return self._outcome.names

    @property
    def slices(self) -> _core.Table:
        """Who ran where: cpu, task, name, start_ns, end_ns, end. Empty unless kept.

        ``pyarrow.table(result.slices)``, ``polars.DataFrame(result.slices)`` and
        ``pandas.DataFrame.from_arrow(result.slices)`` read it by its Arrow interface.
        """
        return self._outcome.slices

    @property
    def states(self) -> _core.Table:
        """States of tasks: task, name, start_ns, end_ns, state. Empty unless kept."""
        return self._outcome.states

    @property
    def queues(self) -> _core.Table:
        """Runnable tasks of each CPU: time_ns, cpu, nr_running. Empty unless kept."""
        return self._outcome.queues

    @property
    def progress(self) -> _core.Table:
        """Units of progress: task, name, time_ns. Empty unless kept."""
        return self._outcome.progress

    @property
    def digest(self) -> Digest | None:
        """SHA-256 of result and events, if the request keeps it."""
        found = self._outcome.digest
        return None if found is None else Digest(*found)

    def timeline(self, width: int = 900) -> str:
        """The timeline of the CPUs as SVG. It needs ``keep="slices"``."""
        return svg(self, width)

    def widget(self) -> Any:
        """The report's timeline for notebooks, with zoom and hover. It needs ``keep="slices"`` and
        the extra ``notebook``."""
        from .widget import Timeline

        return Timeline(self)

    def __repr__(self) -> str:
        makespan = self.totals.get("makespan_ns")
        ended = f"makespan {makespan} ns" if makespan is not None else f"until {self.end_ns} ns"
        return f"<schedlab.Result: {self.workload} under {self.scheduler}, {ended}>"

    def _repr_html_(self) -> str:
        from .timeline import html

        return html(self)
