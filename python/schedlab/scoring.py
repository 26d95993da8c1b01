# SPDX-License-Identifier: MIT OR Apache-2.0
"""Scores of schedulers: how much better than a baseline, over a suite of cases."""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from . import _core
from .intervals import mean
from .native import Native
from .policy import Policy
from .remote import Broken, Child, children, describe
from .simulator import request
from .suite import Case, Suite

Candidate = str | os.PathLike[str] | Callable[[], Policy]

HARM_MAX = 50.0
"""A task may take so many times as long as under the baseline; beyond, the scheduler starves it."""
REPEATED = 2
"""Cases that run twice, in two processes that know nothing of each other."""

WEIGHTS = {"turnaround": 1.0, "latency": 1.0, "harm": 0.5, "makespan": 1.0}
"""What counts: the mean turnaround of all tasks, the 99th percentile of wake-up latencies, the task
that is slowed most, and the makespan, each as a ratio to the baseline's."""


@dataclass(frozen=True)
class Measured:
    """What counts of a run."""

    turnaround_ns: tuple[int, ...]
    """Of each task, in the order of the file."""
    latency_ns: float
    makespan_ns: int
    digest: str


@dataclass(frozen=True)
class CaseScore:
    """The score of a case."""

    case: Case
    value: float
    """How many times as good as the baseline; 0 if the candidate broke a rule."""
    parts: dict[str, float] = field(default_factory=dict)
    """The ratio to the baseline of each thing that counts; less is better."""
    broken: str = ""
    """The rule that the candidate broke; empty: none."""


@dataclass(frozen=True)
class Score:
    """The score of a scheduler. Scores compare by :attr:`value`."""

    candidate: str
    value: float
    """How many times as good as the baseline over the held-out cases (over those of the search, if
    only these ran); 0 if a rule was broken."""
    search: float
    """The same over the cases of the search."""
    cases: tuple[CaseScore, ...]
    broken: tuple[str, ...]
    """The rules that were broken, with the case."""
    seconds: float
    """How long it took."""

    @property
    def is_valid(self) -> bool:
        """Whether no rule was broken."""
        return not self.broken

    def __float__(self) -> float:
        return self.value

    def __lt__(self, other: Score) -> bool:
        return self.value < other.value

    def __repr__(self) -> str:
        if self.broken:
            return f"<schedlab.Score {self.candidate}: broken: {self.broken[0]}>"
        return f"<schedlab.Score {self.candidate}: {self.value:.3f} (search {self.search:.3f})>"


def score(
    scheduler: Candidate,
    suite: Suite | None = None,
    *,
    part: str = "all",
    seconds: float = 10.0,
    program: str = "schedlab",
    **settings: Any,
) -> Score:
    """Score a scheduler by a suite of cases.

    ``scheduler`` is a name with tunables (``"linux-6.12:base_slice=1ms"``), a class of
    :class:`schedlab.Policy`, the path of a Python file with one, or the path of a ``.bpf.c``, which
    the command line program ``program`` compiles and simulates. ``settings`` are further settings
    of :func:`schedlab.simulate`, such as ``tunables``.

    A policy runs in a process of its own for each case, in which it can only compute: the kernel
    refuses files, processes, network and sleep, and limits its memory. It sees what its callbacks
    get, without the names of tasks. It breaks a rule, and the value is 0, if it makes a mistake
    that the simulator finds, raises an exception, exceeds ``seconds`` of time for all cases, leaves
    a task unfinished, slows one to the 50-fold of the baseline, or decides otherwise when a case is
    repeated. A ``.bpf.c`` also breaks one if it does not compile.

    Give code that you do not trust as a file: a class is code that your own process has imported.

    ``part`` is search, held-out or all. The same scheduler and suite give the same score, on every
    machine.
    """
    if part not in ("search", "held-out", "all"):
        raise ValueError(f"part is {part!r}: allowed are search, held-out and all")
    if not seconds > 0:
        raise ValueError(f"seconds is {seconds}: allowed are times above 0")
    since = time.time()
    suite = suite if suite is not None else default_suite()
    candidate, name = _candidate(scheduler, program), describe(scheduler)
    count = suite.size(part)
    runner = _Runner(candidate, name, since + seconds, settings)
    with contextlib.ExitStack() as stack:
        processes: list[Child | None] = [None] * (count + REPEATED)
        if not isinstance(candidate, (str, Native)):
            # They begin before there is a case that they could find in their memory.
            opened = children(candidate, len(processes), math.ceil(seconds))
            processes = [*stack.enter_context(opened)]
        cases = suite.cases(part)
        repeated = [cases[0], cases[-1]][:REPEATED]
        with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
            tried = list(threads.map(runner.try_case, [*cases, *repeated], processes))
    again = dict(zip((case.name for case in repeated), tried[count:], strict=True))
    scored = tuple(
        _judged(case, found, again.get(case.name, found), suite.baseline)
        for case, found in zip(cases, tried, strict=False)
    )
    return _total(name, scored, time.time() - since)


def _total(name: str, scored: tuple[CaseScore, ...], seconds: float) -> Score:
    broken = tuple(f"{one.case.name}: {one.broken}" for one in scored if one.broken)
    search = [one.value for one in scored if not one.case.is_held_out]
    held_out = [one.value for one in scored if one.case.is_held_out]
    value, found = geometric(held_out or search), geometric(search)
    return Score(name, 0.0 if broken else value, found, scored, broken, seconds)


def geometric(values: list[float]) -> float:
    """The geometric mean; 0 without values, or if one is 0."""
    if not values or min(values) <= 0:
        return 0.0
    return math.exp(mean([math.log(value) for value in values]))


@lru_cache(maxsize=1)
def default_suite() -> Suite:
    """The suite of :func:`score`."""
    return Suite()


def _candidate(scheduler: Candidate, program: str) -> Any:
    if isinstance(scheduler, Policy):
        raise TypeError("scheduler is an object: give its class; each case makes its own")
    if callable(scheduler):
        return scheduler
    text = os.fspath(scheduler)
    if text.endswith(".py") or text.endswith(".c"):
        path = Path(text)
        if not path.is_file():
            raise FileNotFoundError(f"{text} is no file: give the path of a .py or .bpf.c")
        return path if text.endswith(".py") else Native(program, path.resolve())
    return text


class _Runner:
    """Runs the cases of one candidate."""

    def __init__(
        self,
        candidate: Any,
        name: str,
        until: float,
        settings: dict[str, Any],
    ) -> None:
        self._candidate, self._name, self._until = candidate, name, until
        self._settings = settings

    def try_case(self, case: Case, child: Child | None) -> Measured | str:
        """What counts of the case, or the rule that the candidate broke."""
        try:
            if isinstance(self._candidate, Native):
                settings = {**case.settings, **self._settings}
                return measured(self._candidate.run(case.workload, settings, self._until))
            scheduler = self._candidate if child is None else "candidate"
            make = None if child is None else child.policy(self._until)
            return simulated(case, scheduler, make, self._watch, **self._settings)
        except Broken as error:
            return str(error)
        except _core.SchedlabError as error:
            if error.kind == "usage" and child is None:
                raise
            return "it took too long" if error.kind == "cancelled" else error.text

    def _watch(self, now: int) -> bool:
        return time.time() < self._until


def simulated(
    case: Case,
    scheduler: str,
    make: Callable[[], Any] | None = None,
    watch: Callable[[int], bool] | None = None,
    **settings: Any,
) -> Measured:
    """What counts of a case under a scheduler."""
    asked = request(case.workload, scheduler, **{**case.settings, **settings}, keep="digest")
    outcome = _core.simulate(json.dumps(asked), make, watch)
    return measured(json.loads(outcome.result_json), (outcome.digest or ("", ""))[1])


def measured(result: dict[str, Any], digest: str = "") -> Measured:
    """What counts of a result. Its tasks are called t0, t1 and so on."""
    totals, tasks = result["measures"]["totals"], result["measures"]["tasks"]
    unfinished = [task["name"] for task in tasks if task["turnaround_ns"] is None]
    if unfinished:
        raise Broken(f"{len(unfinished)} of {len(tasks)} tasks have not ended")
    ordered = sorted(tasks, key=lambda task: int(task["name"].removeprefix("t")))
    return Measured(
        tuple(task["turnaround_ns"] for task in ordered),
        totals["wakeup_latency"]["ns_p99"] or 0,
        totals["makespan_ns"],
        digest,
    )


@lru_cache(maxsize=256)
def _baseline(workload: str, settings: str, scheduler: str) -> Measured:
    case = Case("", 0, False, workload, json.loads(settings))
    return simulated(case, scheduler)


def _judged(case: Case, found: Measured | str, again: Measured | str, baseline: str) -> CaseScore:
    if isinstance(found, str):
        return CaseScore(case, 0.0, broken=found)
    if found != again:
        why = again if isinstance(again, str) else "it decides otherwise when the case is repeated"
        return CaseScore(case, 0.0, broken=why)
    base = _baseline(case.workload, json.dumps(case.settings), baseline)
    parts = parts_of(found, base)
    if parts["harm"] > HARM_MAX:
        why = f"a task takes {parts['harm']:.0f} times as long as under {baseline}"
        return CaseScore(case, 0.0, parts, why)
    return CaseScore(case, value_of(found, base), parts)


def parts_of(found: Measured, base: Measured) -> dict[str, float]:
    """The ratio to the baseline of each thing that counts; less is better."""
    slowed = [
        own / max(other, 1)
        for own, other in zip(found.turnaround_ns, base.turnaround_ns, strict=True)
    ]
    # Nobody notices a tenth of a millisecond: what is below it counts little.
    floor = 100_000
    return {
        "turnaround": mean(found.turnaround_ns) / mean(base.turnaround_ns),
        "latency": (found.latency_ns + floor) / (base.latency_ns + floor),
        "harm": max(slowed),
        "makespan": found.makespan_ns / base.makespan_ns,
    }


def value_of(found: Measured, base: Measured) -> float:
    """How many times as good as the baseline a run is."""
    logs = [WEIGHTS[name] * math.log(value) for name, value in parts_of(found, base).items()]
    return math.exp(-sum(logs) / sum(WEIGHTS.values()))
