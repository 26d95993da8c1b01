# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs on the running kernel, and recorded traces: the command line program makes the results."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _core
from .native import message
from .result import Result
from .simulator import Duration, text_of_time
from .workload import Workload

KEPT = ("slices", "progress", "analysis")
"""What :func:`run` and :func:`analyse` can keep besides the measures."""

KINDS = {1: "check", 2: "usage", 3: "unavailable"}
"""Kinds of errors, by the program's exit code."""


def run(
    workload: str | Workload | None = None,
    *,
    command: Sequence[str] | None = None,
    copies: int | None = None,
    cpus: int | str | None = None,
    params: Mapping[str, Any] | None = None,
    policy: str | None = None,
    priority: int | None = None,
    nice: int | None = None,
    until: Duration | None = None,
    seed: int = 1,
    keep: str | Iterable[str] = "slices",
    program: str = "schedlab",
) -> Result:
    """Run a workload, or copies of a command, on the running kernel, as ``schedlab run`` does.

    - ``workload``: a built-in with parameters, the text of a workload file, or a :class:`Workload`
    - ``command``: words of a command to run in place of a workload; ``copies``: how many of it
    - ``cpus``: a number, or a list as text (``"0-3,8"``); default: all
    - ``params``: values of a built-in workload
    - ``policy``, ``priority``, ``nice``: of tasks that set none
    - ``until``: end of the run (nanoseconds, or text with a unit)
    - ``keep``: names of :data:`KEPT`
    - ``program``: the command line program

    Raises :class:`SchedlabError`; its kind is ``unavailable`` if this machine cannot do it.
    """
    options = _keep(keep)
    settings = {
        "copies": copies,
        "cpus": cpus,
        "policy": policy,
        "priority": priority,
        "nice": nice,
        "until": None if until is None else text_of_time(until),
        "seed": seed,
    }
    for name, value in settings.items():
        if value is not None:
            options.append(f"--{name}={value}")
    options += [f"--param={name}={value}" for name, value in (params or {}).items()]
    if (workload is None) == (command is None):
        raise TypeError("give either a workload or a command")
    if command is not None:
        return _result(program, ["run", *options, "--", *command])
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        return _result(program, ["run", _place(workload, Path(folder)), *options])


def analyse(
    trace: str | os.PathLike[str],
    *,
    tasks: Iterable[str | int] = (),
    between: tuple[Duration, Duration] | None = None,
    starved_after: Duration | None = None,
    wasted_after: Duration | None = None,
    keep: str | Iterable[str] = "slices",
    program: str = "schedlab",
) -> Result:
    """The measures of a recorded trace, as ``schedlab analyse`` computes them.

    - ``trace``: a file of perf, trace-cmd, ftrace or schedlab; the content decides the format
    - ``tasks``: names or process ids; default: all tasks
    - ``between``: start and end of the part to analyse, from the start of the trace (nanoseconds,
      or text with a unit)
    - ``starved_after``, ``wasted_after``: with ``keep="analysis"``, how long a wait and an idle CPU
      must last to be listed
    - ``keep``: names of :data:`KEPT`
    - ``program``: the command line program

    Raises :class:`SchedlabError`, for example if the file is no trace.
    """
    options = _keep(keep)
    options += [f"--task={task}" for task in tasks]
    if between is not None:
        start, end = map(text_of_time, between)
        options += [f"--from={start}", f"--to={end}"]
    limits = {"starved-after": starved_after, "wasted-after": wasted_after}
    for name, value in limits.items():
        if value is not None:
            options.append(f"--{name}={text_of_time(value)}")
    return _result(program, ["analyse", *options, "--", os.fspath(trace)])


def _keep(keep: str | Iterable[str]) -> list[str]:
    names = {keep} if isinstance(keep, str) else set(keep)
    if wrong := sorted(names - set(KEPT)):
        raise ValueError(f"keep names {wrong[0]!r}: allowed are {', '.join(KEPT)}")
    options = ["--json"]
    if names & {"slices", "progress"}:
        options.append("--keep")
    if "analysis" in names:
        options.append("--analysis")
    return options


def _place(workload: str | Workload | None, folder: Path) -> str:
    """The workload as an argument: a name, or the file that holds its text."""
    name, text = "workload.json", workload
    if isinstance(workload, Workload):
        name, text = workload.file_name, workload.text
    text = str(text)
    if "{" not in text:
        return text
    file = folder / Path(name).name
    file.write_text(text, encoding="utf-8")
    return str(file)


def _result(program: str, words: list[str]) -> Result:
    command = [program, *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        text = f"there is no program {program}"
        advice = "install the command line program, or name it with program="
        raise _error("unavailable", f"{text}: {advice}", text, advice) from None
    # A failed expectation ends the program with 1 and a result.
    if not done.stdout.strip():
        text = message(done.stderr)
        raise _error(KINDS.get(done.returncode, "unavailable"), text, text, "")
    return Result(_core.recorded(done.stdout), {"command": command})


def _error(kind: str, whole: str, text: str, advice: str) -> _core.SchedlabError:
    error: Any = _core.SchedlabError(whole)
    error.kind, error.text, error.help = kind, text, advice
    error.line = error.column = None
    return error
