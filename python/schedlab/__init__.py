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

from ._core import END_NAMES, STATE_NAMES, SchedlabError, Table, Task, __version__
from .policy import Policy
from .result import Digest, Result, Warning
from .run import explain, machines, request, schedulers, simulate, validate, workloads
from .workload import Workload

__all__ = [
    "END_NAMES",
    "STATE_NAMES",
    "Digest",
    "Policy",
    "Result",
    "SchedlabError",
    "Table",
    "Task",
    "Warning",
    "Workload",
    "__version__",
    "explain",
    "machines",
    "request",
    "schedulers",
    "simulate",
    "validate",
    "workloads",
]
