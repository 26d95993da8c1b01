# SPDX-License-Identifier: MIT OR Apache-2.0
"""The cases by which a scheduler is scored: workloads and machines drawn from seeds."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .workload import Workload

US = 1_000
MS = 1_000_000

Draw = random.Random
Task = tuple[list[tuple[str, Any]], dict[str, Any]]
"""Events of a task, and its other keys."""


@dataclass(frozen=True)
class Case:
    """A workload on a machine."""

    family: str
    """The kind of workload."""
    number: int
    is_held_out: bool
    workload: str
    """Text of the workload file. Every task ends."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of :func:`schedlab.simulate`."""

    @property
    def name(self) -> str:
        """Family and number."""
        return f"{self.family}-{self.number}{' (held out)' if self.is_held_out else ''}"


def _about(draw: Draw, ns: int) -> int:
    """A time between two thirds and one and a half times as long."""
    return round(ns * 1.5 ** draw.uniform(-1, 1))


def _hogs(draw: Draw, count: int, ns: int, nice: int = 0) -> list[Task]:
    return [([("run", _about(draw, ns))], {"nice": nice}) for _ in range(count)]


def _sleepers(draw: Draw, count: int, run: int, sleep: int, loop: int) -> list[Task]:
    tasks = []
    for _ in range(count):
        events = [("run", _about(draw, run)), ("sleep", _about(draw, sleep))]
        tasks.append((events, {"loop": draw.randint(loop // 2, loop)}))
    return tasks


def _desktop(draw: Draw, cpus: int) -> list[Task]:
    """Tasks that mostly sleep, beside hogs."""
    return _sleepers(draw, draw.randint(2, 4), 800 * US, 9 * MS, 16) + _hogs(
        draw, cpus * draw.randint(1, 3), 70 * MS
    )


def _batch(draw: Draw, cpus: int) -> list[Task]:
    """Jobs of very different lengths, which arrive one by one."""
    tasks = []
    for _ in range(cpus * draw.randint(4, 7)):
        length = round(3 * MS * 20 ** draw.random())
        tasks.append(([("run", length)], {"delay": draw.randrange(60 * MS)}))
    return tasks


def _server(draw: Draw, cpus: int) -> list[Task]:
    """Requests in bursts: short work, a wait for a device, short work."""
    tasks = []
    for _ in range(cpus * draw.randint(6, 10)):
        events = [("run", _about(draw, MS)), ("sleep", _about(draw, 3 * MS))]
        events.append(("run", _about(draw, 2 * MS)))
        tasks.append((events, {"delay": draw.randrange(12 * MS), "loop": draw.randint(1, 3)}))
    return tasks


def _nice(draw: Draw, cpus: int) -> list[Task]:
    """Hogs of several weights, beside sleepers."""
    tasks = _sleepers(draw, draw.randint(1, 2), MS, 7 * MS, 12)
    for nice in draw.sample([-5, -2, 0, 3, 6, 10], 2 + min(cpus, 2)):
        tasks += _hogs(draw, 1, 50 * MS, nice)
    return tasks


def _phases(draw: Draw, cpus: int) -> list[Task]:
    """Tasks that turn from sleepers to hogs or back."""
    tasks = []
    for _ in range(cpus * draw.randint(2, 3)):
        short = [("run", _about(draw, MS)), ("sleep", _about(draw, 4 * MS))] * draw.randint(3, 6)
        long = [("run", _about(draw, 40 * MS))]
        tasks.append((short + long if draw.random() < 0.5 else long + short, {}))
    return tasks


FAMILIES: dict[str, Callable[[Draw, int], list[Task]]] = {
    "desktop": _desktop,
    "batch": _batch,
    "server": _server,
    "nice": _nice,
    "phases": _phases,
}


def _machine(draw: Draw) -> tuple[str, int]:
    """A machine as the text of its file, and the number of its CPUs."""
    threads, cores, llcs = draw.choice([1, 2]), draw.randint(1, 2), draw.randint(1, 2)
    lines = ['name = "drawn"', 'summary = "drawn"', f"hz = {draw.choice([250, 1000])}"]
    if threads == 2:
        lines.append(f"smt_speed = [{draw.randint(550, 700)}]")
    lines += ["[topology]", f"llcs_per_node = {llcs}", f"cores_per_llc = {cores}"]
    lines += [f"threads_per_core = {threads}", ""]
    return "\n".join(lines), threads * cores * llcs


def _text(draw: Draw, tasks: list[Task]) -> str:
    """The workload file. Neither name nor order says what a task is."""
    workload = Workload("case")
    draw.shuffle(tasks)
    for number, (events, keys) in enumerate(tasks):
        workload.task(f"t{number}", events, **keys)
    return workload.text


class Suite:
    """Cases to search with, and others that are held out.

    The held-out cases have other seeds, larger machines and machines with caches and hardware
    threads. Both are functions of their seeds, so that a score is the same on every machine.
    """

    def __init__(
        self,
        *,
        seed: int = 1,
        held_out: int | str = "held out",
        search_cases: int = 2,
        held_out_cases: int = 3,
        families: tuple[str, ...] = tuple(FAMILIES),
        baseline: str = "linux-6.12",
    ) -> None:
        """``seed`` draws the cases of the search, ``held_out`` the others: give a text that nobody
        who writes candidates knows. ``search_cases`` and ``held_out_cases`` are their numbers for
        each of the ``families``. ``baseline`` is the scheduler that has the value 1."""
        unknown = [name for name in families if name not in FAMILIES]
        if unknown or not families:
            allowed = ", ".join(FAMILIES)
            raise ValueError(f"families names {unknown or 'nothing'}: allowed are {allowed}")
        if search_cases < 1 or held_out_cases < 0:
            raise ValueError("search_cases must be 1 or more, held_out_cases 0 or more")
        self.baseline = baseline
        self._seed, self._held_out = seed, str(held_out)
        self._counts = search_cases, held_out_cases
        self._families = families

    def size(self, part: str) -> int:
        """Number of cases of a part: search, held-out or all."""
        search, held_out = (count * len(self._families) for count in self._counts)
        return {"search": search, "held-out": held_out, "all": search + held_out}[part]

    def cases(self, part: str = "all") -> list[Case]:
        """The cases of a part."""
        cases = []
        for family in self._families:
            if part != "held-out":
                cases += [self._case(family, number, False) for number in range(self._counts[0])]
            if part != "search":
                cases += [self._case(family, number, True) for number in range(self._counts[1])]
        return cases

    def _case(self, family: str, number: int, is_held_out: bool) -> Case:
        salt = self._held_out if is_held_out else f"seed {self._seed}"
        digest = hashlib.sha256(f"{salt}/{family}/{number}".encode()).digest()
        draw = Draw(int.from_bytes(digest[:16], "big"))
        settings: dict[str, Any] = {"costs": "default", "seed": draw.randrange(1 << 32)}
        if is_held_out and number % 2 == 0:
            settings["machine"], cpus = _machine(draw)
        else:
            cpus = draw.randint(1, 3 if is_held_out else 2)
            settings["cpus"] = cpus
        text = _text(draw, FAMILIES[family](draw, cpus))
        return Case(family, number, is_held_out, text, settings)
