# SPDX-License-Identifier: MIT OR Apache-2.0
"""A laboratory for Linux CPU schedulers: simulate a workload under any of them.

>>> import schedlab
>>> result = schedlab.simulate("hogs:n=2,work=10ms", "rr:quantum=5ms", keep="slices")
>>> result.totals["makespan_ns"]
20000000
>>> result.slices.column("name")
['hog-0', 'hog-1', 'hog-0', 'hog-1']

Times are whole nanoseconds of simulated time in results, and text with a unit ("5ms") or
nanoseconds in arguments. The same request gives the same bytes as the program ``schedlab sim``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._core import END_NAMES, STATE_NAMES, SchedlabError, Table, Task, __version__
from .policy import Policy
from .recorded import analyse, run
from .result import Digest, Result, Warning
from .simulator import (
    explain,
    machines,
    measures,
    request,
    schedulers,
    simulate,
    validate,
    workloads,
)
from .workload import Workload

if TYPE_CHECKING:
    from .scoring import CaseScore, Score, score
    from .suite import Case, Suite
    from .sweeps import Sweep, open_sweep, sweep

__all__ = [
    "END_NAMES",
    "STATE_NAMES",
    "Case",
    "CaseScore",
    "Digest",
    "Policy",
    "Result",
    "SchedlabError",
    "Score",
    "Suite",
    "Sweep",
    "Table",
    "Task",
    "Warning",
    "Workload",
    "__version__",
    "analyse",
    "explain",
    "machines",
    "measures",
    "open_sweep",
    "request",
    "run",
    "schedulers",
    "score",
    "simulate",
    "sweep",
    "validate",
    "workloads",
]

# What needs other packages is imported when it is first used.
_LATE = {
    "Case": "suite",
    "CaseScore": "scoring",
    "Score": "scoring",
    "Suite": "suite",
    "Sweep": "sweeps",
    "open_sweep": "sweeps",
    "score": "scoring",
    "sweep": "sweeps",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_LATE[name]}", __name__), name)
