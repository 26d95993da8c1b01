# SPDX-License-Identifier: MIT OR Apache-2.0
"""Workloads: read from files, or built in Python."""

from __future__ import annotations

import json
from os import PathLike, fspath
from pathlib import Path
from typing import Any

Duration = int | str


def _time(value: Duration) -> str:
    return value if isinstance(value, str) else f"{value}ns"


class Workload:
    """A workload: what tasks do, in the form of a workload file.

    >>> import schedlab
    >>> mine = schedlab.Workload("mine", duration="1s")
    >>> _ = mine.task("editor", [("run", "2ms"), ("sleep", "8ms")], loop=20)
    >>> _ = mine.task("compiler", [("run", "400ms")], nice=10)
    >>> schedlab.simulate(mine, "linux-6.12").workload
    'mine'
    """

    def __init__(self, name: str = "workload", *, duration: Duration | None = None) -> None:
        """An empty workload. ``duration`` ends its runs; without it they end with the last task."""
        self.name = name
        self._file_name: str | None = None
        self._text: str | None = None
        self._document: dict[str, Any] = {"name": name, "tasks": {}}
        if duration is not None:
            self._document["global"] = {"duration": _time(duration)}

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Workload:
        """Read a workload file. Mistakes in it are found when it is simulated."""
        return cls.from_text(Path(path).read_text(encoding="utf-8"), fspath(path))

    @classmethod
    def from_text(cls, text: str, file_name: str = "workload.json") -> Workload:
        """A workload from the text of a file, which errors call ``file_name``."""
        workload = cls(Path(file_name).stem)
        workload._text, workload._file_name = text, file_name
        return workload

    @classmethod
    def builtin(cls, name: str, **params: Any) -> str:
        """The text of a built-in workload with parameters: ``Workload.builtin("hogs", n=4)``."""
        given = ",".join(f"{key}={value}" for key, value in params.items())
        return f"{name}:{given}" if given else name

    def task(
        self,
        name: str,
        events: list[tuple[str, Any]] | None = None,
        *,
        loop: int = 1,
        instances: int = 1,
        delay: Duration | None = None,
        policy: str | None = None,
        priority: int | None = None,
        nice: int | None = None,
        cpus: list[int] | None = None,
        taskgroup: str | None = None,
        phases: dict[str, Any] | None = None,
        **more: Any,
    ) -> Workload:
        """Add a task and return the workload.

        ``events`` is what it does in turn: ``("run", "5ms")``, ``("sleep", "10ms")``,
        ``("lock", "m")`` and all other events of workload files; times are nanoseconds or text
        with a unit. ``loop`` is how often (-1: without end). ``more`` are other keys of the format.
        """
        if self._text is not None:
            raise ValueError(f"{self._file_name} is a file: add the task there")
        if name in self._document["tasks"]:
            raise ValueError(f"there is a task {name!r} already: give another name")
        if nice is not None and priority is not None:
            raise ValueError("nice and priority are both given: give one of them")
        body: dict[str, Any] = {"loop": loop, "instance": instances}
        timed = {"delay": None if delay is None else _time(delay)}
        named = {"policy": _policy(policy), "priority": nice if nice is not None else priority}
        others = {"cpus": cpus, "taskgroup": taskgroup, "phases": phases}
        for key, value in {**timed, **named, **others, **more}.items():
            if value is not None:
                body[key] = value
        for number, (kind, value) in enumerate(events or []):
            # Keys of an object are unique: a number makes them so.
            body[f"{kind}{number}"] = _event_value(kind, value)
        self._document["tasks"][name] = body
        return self

    def object(self, name: str, kind: str, **keys: Any) -> Workload:
        """Add something that tasks share, such as a mutex or a pipe, and return the workload."""
        self._document.setdefault("objects", {})[name] = {"kind": kind, **keys}
        return self

    def group(self, path: str, **keys: Any) -> Workload:
        """Add a control group such as ``/a`` with its ``weight`` or ``cpu_max``."""
        self._document.setdefault("cgroups", {})[path] = keys
        return self

    def expect(self, measure: str, task: str | None = None, **bounds: Any) -> Workload:
        """Expect a measure to be ``below``, ``at_most``, ``equal``, ``at_least`` or ``above``."""
        entry = {"measure": measure, **({"task": task} if task else {}), **bounds}
        self._document.setdefault("expect", []).append(entry)
        return self

    @property
    def text(self) -> str:
        """The text of the workload file."""
        return self._text if self._text is not None else json.dumps(self._document, indent=2)

    @property
    def file_name(self) -> str:
        """The name that errors use."""
        return self._file_name or f"{self.name}.json"

    def __repr__(self) -> str:
        return f"Workload({self.file_name!r})"


def _policy(policy: str | None) -> str | None:
    if policy is None or policy.upper().startswith("SCHED_"):
        return policy
    return f"SCHED_{policy.upper()}"


TIMED = ("run", "runtime", "sleep")


def _event_value(kind: str, value: Any) -> Any:
    # A bare number is nanoseconds here, and microseconds in a file.
    if isinstance(value, int) and kind in TIMED:
        return f"{value}ns"
    return value
