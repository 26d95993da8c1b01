# SPDX-License-Identifier: MIT OR Apache-2.0
"""A policy in a process of its own, which can compute and do nothing else.

The simulation and its measures stay in this process. The candidate gets the arguments of its
callbacks through a socket and answers through it. So it can neither read the case nor change its
measures, what it remembers ends with the case, and it can be ended at any moment.

The process is the one in which the command line runs and grades policies (``policy.py``). Before it
runs the candidate, the kernel takes away every system call that opens, writes, sends or starts
something, and limits time and memory.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from . import _core
from .policy import Policy

MESSAGE_MAX = 1 << 16
"""Longest answer, in bytes."""

MEMORY_MAX = 512 << 20
"""Memory of a candidate, in bytes."""

SEED = 1
"""Of the random numbers of candidates. That of the case would tell which case it is."""

WRONG = "it wrote to the socket of its answers"


class Broken(Exception):
    """A candidate broke a rule of the evaluation."""


@lru_cache(maxsize=1)
def _script() -> types.ModuleType:
    """What runs in the process, as a module that knows the types of this package."""
    module = types.ModuleType("schedlab.policy_process")
    exec(compile(_core.policy_script(), "policy_process.py", "exec"), module.__dict__)
    module.__dict__.update(Task=_core.Task, Policy=Policy)
    return module


@contextlib.contextmanager
def children(
    candidate: Callable[[], Policy] | Path, count: int, cpu_seconds: int
) -> Iterator[list[Child]]:
    """Processes of a candidate, each for one case. They end with the block."""
    pairs = [socket.socketpair() for _ in range(count)]
    ends = [theirs for _, theirs in pairs]
    pids: list[int] = []
    server: subprocess.Popen[bytes] | None = None
    try:
        if isinstance(candidate, Path):
            first: Any = candidate.read_text(encoding="utf-8")
            server = _fresh(ends, cpu_seconds)
        else:
            first = None
            for end in ends:
                pids.append(_forked(candidate, end, cpu_seconds))
        for end in ends:
            end.close()
        yield [Child(own, first) for own, _ in pairs]
    finally:
        for pair in pairs:
            for end in pair:
                end.close()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        if server is not None:
            # The processes of the candidate belong to its group, which they cannot leave.
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _fresh(ends: list[socket.socket], cpu_seconds: int) -> subprocess.Popen[bytes]:
    """Processes of a new interpreter, in whose memory nothing of this one is."""
    numbers = [end.fileno() for end in ends]
    command = [sys.executable or "python3", "-S", "-s", "-B", "-c", _core.policy_script()]
    command += [str(number) for number in (cpu_seconds, MEMORY_MAX, *numbers)]
    kept = {name: value for name, value in os.environ.items() if name == "PATH"}
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={**kept, "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"},
        pass_fds=numbers,
        start_new_session=True,
    )


def _forked(make: Callable[[], Policy], end: socket.socket, cpu_seconds: int) -> int:
    """A copy of this process, which is all that has the class. Its number."""
    script = _script()
    pid = os.fork()
    if pid != 0:
        return pid
    try:
        script.tie()
        # What the caller has printed and not flushed yet is not printed twice.
        os.dup2(end.fileno(), 0)
        os.dup2(end.fileno(), 1)
        gc.freeze()
        # By which an error names the line of the class.
        code = getattr(getattr(make, "pick", None), "__code__", None)
        script.__dict__["FILE"] = getattr(code, "co_filename", "")
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        script.serve(lambda _: make(), cpu_seconds, used + MEMORY_MAX)
    finally:
        os._exit(0)


class Child:
    """A candidate that waits for its case."""

    def __init__(self, end: socket.socket, first: Any) -> None:
        self._end, self._first = end, first
        self._until = 0.0
        self._rest = b""

    def policy(self, until: float) -> Callable[[], Any]:
        """The scheduler for the simulator, which ends with an error at this time of the clock."""
        self._until = until
        ready = self._receive()
        if ready != "ready":
            why = ready[1] if isinstance(ready, list) and len(ready) == 2 else WRONG
            raise RuntimeError(f"this machine cannot lock up a policy in Python: {why}")
        methods = self._asked(self._first)
        if not isinstance(methods, list):
            raise Broken(WRONG)
        self._asked(["seed", SEED])
        own: dict[str, Any] = {"enqueue": self._enqueue, "pick": self._pick}
        own |= {"dequeue": self._dequeue, "tick": self._tick, "quantum": self._quantum}
        if "enqueue" not in methods:
            own["enqueue"] = lambda task, *, now, why: None
        names = ("enqueue", "pick", *(name for name in methods if name in own))
        return type("Remote", (), {name: staticmethod(own[name]) for name in names})

    def _asked(self, question: Any) -> Any:
        try:
            self._end.settimeout(max(self._until - time.time(), 0.001))
            self._end.sendall(json.dumps(question).encode() + b"\n")
        except TimeoutError as error:
            raise Broken("it took too long") from error
        except OSError:
            # It has ended. What it said before tells why.
            pass
        answer = self._receive()
        if isinstance(answer, dict):
            raise Broken(str(answer.get("error", WRONG)))
        return answer

    def _receive(self) -> Any:
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            if sum(map(len, parts)) > MESSAGE_MAX:
                raise Broken(WRONG)
            try:
                self._end.settimeout(max(self._until - time.time(), 0.001))
                part = self._end.recv(MESSAGE_MAX)
            except TimeoutError as error:
                raise Broken("it took too long") from error
            except OSError:
                part = b""
            if not part:
                raise Broken("its process ended: it exceeded a limit, or called os._exit")
            parts.append(part)
        line, self._rest = b"".join(parts).split(b"\n", 1)
        try:
            return json.loads(line)
        except ValueError as error:
            raise Broken(WRONG) from error

    def _enqueue(self, task: _core.Task, *, now: int, why: str) -> Any:
        return self._asked(["enqueue", _fields(task), now, why])

    def _pick(self, cpu: int, *, now: int, waiting: list[int]) -> Any:
        return self._asked(["pick", cpu, now, waiting])

    def _dequeue(self, task: _core.Task, *, now: int) -> None:
        self._asked(["dequeue", _fields(task), now])

    def _tick(self, task: _core.Task, *, now: int, ran_ns: int) -> Any:
        return self._asked(["tick", _fields(task), now, ran_ns])

    def _quantum(self, task: _core.Task) -> Any:
        return self._asked(["quantum", _fields(task)])


def _fields(task: _core.Task) -> tuple[Any, ...]:
    """A task without its name, which would tell the case."""
    fields = (task.nice, task.policy, task.prio, task.cpu, task.ran_ns, task.released_ns)
    return (task.id, f"task-{task.id}", *fields)


def describe(candidate: Any) -> str:
    """The name of a candidate."""
    if inspect.isclass(candidate) or inspect.isfunction(candidate):
        return candidate.__name__
    return str(candidate)
