# SPDX-License-Identifier: MIT OR Apache-2.0
"""The part of the package that is written in Rust. Use the package ``schedlab`` instead."""

from collections.abc import Callable
from typing import Any, Literal, final

__version__: str
END_NAMES: list[str]
"""Why slices end."""
STATE_NAMES: list[str]
"""States of tasks."""

class SchedlabError(Exception):
    """Why a request has no result, with the text of the command line."""

    kind: Literal["usage", "check", "unavailable", "cancelled"]
    """usage: the request is wrong; check: the scheduler broke a rule; cancelled: by the caller."""
    text: str
    """What was found, and what is allowed."""
    help: str
    """What to do; may be empty."""
    line: int | None
    """Line of a mistake in a workload file, from 1."""
    column: int | None
    """Column of it, from 1."""

@final
class Table:
    """A table of columns that other libraries read by its Arrow interface, without a copy."""

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""

    def column(self, name: str) -> list[Any]:
        """A column as a list of numbers or words. Names that end in ``_ns`` are nanoseconds."""

    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Task:
    """A task, as a scheduler written in Python sees it."""

    def __init__(
        self,
        id: int,
        name: str = "task",
        nice: int = 0,
        policy: str = "OTHER",
        prio: int = 120,
        cpu: int = 0,
        ran_ns: int = 0,
        released_ns: int = 0,
    ) -> None: ...
    id: int
    """Number, in order of creation."""
    name: str
    """Name, at most 15 bytes."""
    nice: int
    """Nice value, -20 to 19."""
    policy: str
    """Policy, such as FIFO."""
    prio: int
    """The kernel's priority; lower is more important."""
    cpu: int
    """The CPU that it is on, or was on last."""
    ran_ns: int
    """CPU time so far (ns)."""
    released_ns: int
    """When it was released (ns)."""

@final
class Outcome:
    """What a simulation gives."""

    result_json: str
    notes: list[str]
    digest: tuple[str, str] | None
    end_ns: int
    names: list[str]
    slices: Table
    states: Table
    queues: Table
    progress: Table

@final
class Candidate:
    """A candidate of a decision. Times are nanoseconds."""

    task: int
    nice: int
    prio: int
    ran_ns: int
    waited_ns: int
    age_ns: int

@final
class Episode:
    """A run that stops before each decision."""

    def __init__(self, request: str, quantum_ns: int | None = None) -> None: ...
    candidates: list[Candidate]
    cpu: int
    now_ns: int
    has_ended: bool
    waited_ns: int
    nr_exited: int
    def decide(self, task: int) -> bool:
        """Decide, and run up to the next decision or the end. Returns whether there is one."""

    def measures_json(self) -> str:
        """The measures so far, as JSON."""

@final
class Plan:
    """All runs of an experiment file, each with the key that identifies its stored result."""

    def __init__(
        self,
        name: str,
        text: str,
        host_cpus: str,
        folder: str | None = None,
        files: dict[str, str] | None = None,
        runs_max: int | None = None,
    ) -> None: ...
    keys: list[str]
    """The key of each run, by which a stored result is known."""
    key: str
    """The key of the whole plan."""
    title: str
    """Title of the experiment file, or else its name."""
    notes: list[str]
    """Remarks about runs that the plan leaves out."""
    files: dict[str, str]
    """Text of each file that the experiment names."""
    parameters: list[str]
    """Names of parameters, axes and tunables."""
    def __len__(self) -> int: ...
    def describe(self, index: int) -> tuple[str, str, str, int, int, int, list[str | None]]:
        """What a run is: experiment, scheduler, workload, CPUs, seed, repetition, and the value of
        each parameter."""

    def run(self, index: int) -> tuple[str | None, list[float | None], str | None]:
        """Make a run. Its result as stored (JSON) and the value of each measure, or else the text
        of its error."""

def simulate(
    request: str,
    policy: Callable[[], object] | None = None,
    watch: Callable[[int], bool] | None = None,
) -> Outcome: ...
def recorded(result: str) -> Outcome: ...
def validate(request: str) -> None: ...
def explain(request: str, ask: str) -> str: ...
def list_schedulers() -> str: ...
def list_workloads() -> str: ...
def list_machines() -> list[str]: ...
def list_measures() -> list[tuple[str, str]]: ...
def t_975(degrees: int) -> float: ...
def program() -> tuple[str, str]: ...
def timeline_script() -> str: ...
def policy_script() -> str: ...
