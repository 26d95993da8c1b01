# SPDX-License-Identifier: MIT OR Apache-2.0
"""Functions that simulate, check and explain requests, and the lists of what can be simulated."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import _core
from .policy import Policy
from .result import Result
from .workload import Workload

Duration = int | str
"""A time: nanoseconds, or text with a unit (``"5ms"``)."""

KEPT = ("slices", "states", "queues", "progress", "analysis", "digest", "totals_only")
"""What :func:`simulate` can keep besides the measures."""


def text_of_time(value: Duration) -> str:
    """A time as text with a unit."""
    return value if isinstance(value, str) else f"{value}ns"


def _kept(keep: str | Iterable[str]) -> dict[str, bool]:
    names = [keep] if isinstance(keep, str) else list(keep)
    for name in names:
        if name not in KEPT:
            allowed = ", ".join(KEPT)
            raise ValueError(f"keep names {name!r}: allowed are {allowed}")
    return {name: True for name in names}


def request(
    workload: str | Workload,
    scheduler: str,
    *,
    cpus: int | None = None,
    machine: str | None = None,
    hz: int | None = None,
    preempt: str | None = None,
    costs: str | Mapping[str, int] | None = None,
    watchdog: Duration | None = None,
    tunables: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    policy: str | None = None,
    priority: int | None = None,
    nice: int | None = None,
    until: Duration | None = None,
    seed: int = 1,
    keep: str | Iterable[str] = (),
    workload_name: str | None = None,
) -> dict[str, Any]:
    """The request as data, in the published form (``schedlab schema request``).

    The arguments are those of :func:`simulate`.
    """
    if isinstance(workload, Workload):
        workload_name = workload_name or workload.file_name
        workload = workload.text
    if isinstance(costs, Mapping):
        costs = "".join(f"{name} = {ns}\n" for name, ns in costs.items())
    values: dict[str, Any] = {
        "workload": workload,
        "workload_name": workload_name,
        "scheduler": scheduler,
        "cpus": cpus,
        "machine": machine,
        "hz": hz,
        "preempt": preempt,
        "costs": costs,
        "watchdog": None if watchdog is None else text_of_time(watchdog),
        "tunables": {name: str(value) for name, value in (tunables or {}).items()},
        "params": {name: str(value) for name, value in (params or {}).items()},
        "policy": policy,
        "priority": priority,
        "nice": nice,
        "until": None if until is None else text_of_time(until),
        "seed": seed,
        "keep": _kept(keep),
    }
    return {name: value for name, value in values.items() if value is not None}


def simulate(
    workload: str | Workload,
    scheduler: str | Callable[[], Policy] = "linux",
    *,
    progress: Callable[[int], bool | None] | None = None,
    **settings: Any,
) -> Result:
    """Simulate a workload under a scheduler.

    ``workload`` is a built-in with parameters (``"hogs:n=4,work=100ms"``), the text of a workload
    file, or a :class:`Workload`. ``scheduler`` is a name of :func:`schedulers`, with a policy and
    tunables if wanted (``"linux-6.12:FIFO"``, ``"linux-6.12:base_slice=3ms"``), or a class of
    schedulers written in Python (:class:`Policy`).

    Settings, all optional:

    - ``cpus``: number of CPUs; default: all of the machine, or 1
    - ``machine``: a name of :func:`machines`, or the text of a machine file
    - ``costs``: ``"zero"``, ``"default"``, a mapping of names to nanoseconds, or the text of a file
    - ``preempt``: none, voluntary, full or lazy; ``hz``: ticks per second
    - ``tunables``, ``params``: values of the scheduler and of a built-in workload
    - ``policy``, ``priority``, ``nice``: of tasks that set none
    - ``until``: end of the run (nanoseconds, or text with a unit)
    - ``watchdog``: longest wait of a runnable task, ``"auto"`` or ``"off"``
    - ``seed``: of every random draw; default 1
    - ``keep``: names of :data:`KEPT`: what the result holds besides the measures

    ``progress`` is called with the simulated time (ns) now and then; the run ends with an error of
    the kind ``cancelled`` if it returns False. Other Python threads run meanwhile.

    Raises :class:`SchedlabError` with the texts of the command line. An exception that a Python
    scheduler or ``progress`` raises comes out as itself.
    """
    make = None
    if not isinstance(scheduler, str):
        make, scheduler = scheduler, getattr(scheduler, "__name__", type(scheduler).__name__)
        if isinstance(make, Policy):
            raise TypeError("scheduler is an object: give its class; each run makes its own")
    asked = request(workload, scheduler, **settings)
    watch = None
    if progress is not None:

        def watch(now: int) -> bool:
            return progress(now) is not False

    return Result(_core.simulate(json.dumps(asked), make, watch), asked)


def validate(workload: str | Workload, scheduler: str, **settings: Any) -> None:
    """Check a request without running it. Raises what :func:`simulate` raises."""
    _core.validate(json.dumps(request(workload, scheduler, **settings)))


def explain(
    workload: str | Workload,
    scheduler: str,
    *,
    at_ns: int | None = None,
    between_ns: tuple[int, int] | None = None,
    task: str | None = None,
    nth: int | None = None,
    cpu: int | None = None,
    decisions: int = 20,
    candidates: int = 8,
    **settings: Any,
) -> dict[str, Any]:
    """Why a task was picked at a time, or what kept a task waiting.

    Without a time and a task it explains the longest wait of any task. The answer has the form of
    ``schedlab explain --json`` (``schedlab schema explain``); times are in nanoseconds.
    """
    since, to = between_ns if between_ns is not None else (None, None)
    ask = {
        "at_ns": at_ns,
        "from_ns": since,
        "to_ns": to,
        "task": task,
        "nth": nth,
        "cpu": cpu,
        "decisions_max": decisions,
        "candidates_max": candidates,
    }
    asked = request(workload, scheduler, **settings)
    return json.loads(_core.explain(json.dumps(asked), json.dumps(ask)))


def schedulers() -> list[dict[str, Any]]:
    """Every scheduler: name, summary, source, what it leaves out, tunables (times in ns)."""
    return json.loads(_core.list_schedulers())


def workloads() -> list[dict[str, Any]]:
    """Every built-in workload: name and summary."""
    return json.loads(_core.list_workloads())


def machines() -> list[str]:
    """The names of the modelled machines."""
    return _core.list_machines()


def measures() -> dict[str, str]:
    """Unit of every measure of a run: ``ns``, ``1/s``, ``count``, or ``1`` for a ratio."""
    return dict(_core.list_measures())
