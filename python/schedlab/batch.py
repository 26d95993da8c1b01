# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a worker of a sweep does: some runs of a plan, into one file."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from . import _core
from .store import MEASURES, Store, name_of


@dataclass(frozen=True)
class PlanSpec:
    """Everything from which a worker makes the same plan."""

    name: str
    """Name of the experiment file, for errors."""
    text: str
    """Its text."""
    host_cpus: str
    """The CPUs that stand for ``all``."""
    files: tuple[tuple[str, str], ...]
    """Text of each file that the experiment names."""
    key: str
    """Key of the whole plan."""
    runs_max: int
    program: tuple[str, str] = field(default_factory=_core.program)
    """Version of schedlab, and the sum of its models."""


@lru_cache(maxsize=2)
def plan_of(spec: PlanSpec) -> _core.Plan:
    """The plan, which a worker makes once. It must be that of the caller, run by run."""
    if spec.program != _core.program():
        raise RuntimeError(
            f"this worker has schedlab {_core.program()}, the caller {spec.program}: install the "
            "same version everywhere, so that all make the same results"
        )
    plan = _core.Plan(
        spec.name, spec.text, spec.host_cpus, files=dict(spec.files), runs_max=spec.runs_max
    )
    if plan.key != spec.key:
        raise RuntimeError(f"the plan of {spec.name} differs on this worker")
    return plan


def row_of(plan: _core.Plan, index: int, key: str) -> dict[str, object]:
    """Make a run; the row that is stored of it."""
    _, scheduler, workload, cpus, seed, repetition, values = plan.describe(index)
    given = zip(plan.parameters, values, strict=True)
    result, measured, error = plan.run(index)
    return {
        "key": key,
        "scheduler": scheduler,
        "workload": workload,
        "cpus": cpus,
        "seed": seed,
        "repetition": repetition,
        "parameters": [(name, value) for name, value in given if value is not None],
        **dict(zip(MEASURES, measured, strict=False)),
        "error": error,
        "result": result,
    }


def run_batch(spec: PlanSpec, runs: Sequence[tuple[int, str]], where: str) -> tuple[int, float]:
    """Make these runs (number and key), unless their file is there.

    Returns their number and the processor seconds that they took, by which later batches get their
    size. What there is, only the directory says: a worker that is lost repeats its batch.
    """
    name, store = name_of(key for _, key in runs), Store(where)
    if store.exists(name):
        return len(runs), 0.0
    plan = plan_of(spec)
    since = time.thread_time()
    rows = [row_of(plan, index, key) for index, key in runs]
    took = time.thread_time() - since
    store.write(name, rows)
    return len(runs), took
