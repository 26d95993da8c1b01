# SPDX-License-Identifier: MIT OR Apache-2.0
"""A scheduler in a process of its own: it sees what the simulator tells it, and nothing else.

The simulation and its measures stay in this process. The candidate gets the arguments of its
callbacks through a pipe and answers through another. So it can neither read the case nor change
its measures, what it remembers ends with the case, and it can be ended at any moment.
"""

from __future__ import annotations

import gc
import inspect
import json
import os
import resource
import select
import signal
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import _core
from .policy import Policy

HEAD = struct.Struct("<I")
OPTIONAL = ("dequeue", "tick", "quantum")
MESSAGE_MAX = 1 << 20


class Broken(Exception):
    """A candidate broke a rule of the evaluation."""


def _send(file: int, value: Any) -> None:
    content = json.dumps(value).encode()
    content = HEAD.pack(len(content)) + content
    while content:
        content = content[os.write(file, content) :]


def _receive(file: int, until: float | None = None) -> Any:
    content = b""
    wanted = HEAD.size
    has_head = False
    while len(content) < wanted:
        if until is not None and not select.select([file], [], [], max(until - time.time(), 0))[0]:
            raise Broken("it took too long")
        part = os.read(file, 1 << 16)
        if not part:
            raise Broken("its process ended")
        content += part
        if not has_head and len(content) >= HEAD.size:
            has_head = True
            length = HEAD.unpack_from(content)[0]
            if length > MESSAGE_MAX:
                raise Broken("it wrote to the pipe of its answers")
            wanted += length
    if len(content) != wanted:
        raise Broken("it wrote to the pipe of its answers")
    try:
        return json.loads(content[HEAD.size :])
    except ValueError as error:
        raise Broken("it wrote to the pipe of its answers") from error


def load(path: Path) -> type[Policy]:
    """The last scheduler in a file of Python."""
    names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    found = [
        value
        for value in names.values()
        if isinstance(value, type) and issubclass(value, Policy) and value is not Policy
    ]
    if not found:
        raise ValueError(f"{path} has no class of schedlab.Policy")
    return found[-1]


class Child:
    """A candidate that waits for its case."""

    def __init__(self, candidate: Callable[[], Policy] | Path, cpu_seconds: int) -> None:
        to_child, self._ask = os.pipe()
        self._answer, from_child = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self._ask)
                os.close(self._answer)
                resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                _serve(candidate, to_child, from_child)
            finally:
                os._exit(0)
        os.close(to_child)
        os.close(from_child)
        self._late: list[Any] = []
        self._until: float | None = None

    def policy(self, until: float) -> Callable[[], Any]:
        """The scheduler for the simulator, which ends with an error at this time of the clock."""
        self._until = until
        methods = self._asked("hello")
        own = {"enqueue": self._enqueue, "pick": self._pick}
        own |= {"dequeue": self._dequeue, "tick": self._tick, "quantum": self._quantum}
        if "enqueue" not in methods:
            own["enqueue"] = lambda task, *, now, why: None
        names = {"enqueue", "pick", *methods}
        members = {name: staticmethod(own[name]) for name in names}
        return type("Remote", (), members)

    def _call(self, *message: Any) -> Any:
        message, self._late = (*self._late, message), []
        try:
            _send(self._ask, message)
        except BrokenPipeError as error:
            raise Broken("its process ended") from error
        return _receive(self._answer, self._until)

    def _asked(self, *message: Any) -> Any:
        answer = self._call(*message)
        if not isinstance(answer, list) or len(answer) != 2:
            raise Broken("it wrote to the pipe of its answers")
        if answer[0] is not True:
            raise Broken(str(answer[1]))
        return answer[1]

    def _enqueue(self, task: _core.Task, *, now: int, why: str) -> Any:
        return self._asked("enqueue", _fields(task), now, why)

    def _pick(self, cpu: int, *, now: int, waiting: list[int]) -> Any:
        return self._asked("pick", cpu, now, waiting)

    def _dequeue(self, task: _core.Task, *, now: int) -> None:
        # Nobody waits for an answer: it goes along with the next question.
        self._late.append(("dequeue", _fields(task), now))

    def _tick(self, task: _core.Task, *, now: int, ran_ns: int) -> Any:
        return self._asked("tick", _fields(task), now, ran_ns)

    def _quantum(self, task: _core.Task) -> Any:
        return self._asked("quantum", _fields(task))

    def close(self) -> None:
        """End the process."""
        os.close(self._ask)
        os.close(self._answer)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _fields(task: _core.Task) -> tuple[Any, ...]:
    """A task without its name, which would tell the case."""
    fields = (task.nice, task.policy, task.prio, task.cpu, task.ran_ns, task.released_ns)
    return (task.id, f"task-{task.id}", *fields)


def _serve(candidate: Callable[[], Policy] | Path, questions: int, answers: int) -> None:
    """The life of the child."""
    # What the caller wrote and has not flushed yet is not written twice, and nothing is printed.
    null = os.open(os.devnull, os.O_RDWR)
    for file in (0, 1, 2):
        os.dup2(null, file)
    # No file of the caller stays open, only the two pipes.
    low, high = sorted((questions, answers))
    for first, last in ((3, low), (low + 1, high), (high + 1, 1 << 16)):
        os.closerange(first, last)
    gc.freeze()
    made: Any = None
    while True:
        for name, *rest in _receive(questions):
            try:
                if name == "hello":
                    made = (load(candidate) if isinstance(candidate, Path) else candidate)()
                    answer = True, _methods(made)
                else:
                    answer = True, _called(made, name, rest)
            except BaseException as error:
                answer = False, f"{type(error).__name__}: {error}"[:500]
                if name == "dequeue":
                    made = _Failed(answer[1])
            if name != "dequeue":
                _send(answers, answer)


class _Failed:
    """In place of a candidate that failed where nobody waits for an answer."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(self._text)


def _methods(made: Any) -> list[str]:
    names = [name for name in OPTIONAL if callable(getattr(made, name, None))]
    if not callable(getattr(made, "pick", None)):
        raise TypeError("a scheduler needs the method pick: add it")
    if getattr(type(made), "enqueue", None) is not Policy.enqueue:
        names.append("enqueue")
    return names


def _called(made: Any, name: str, rest: list[Any]) -> Any:
    if name == "pick":
        cpu, now, waiting = rest
        picked = made.pick(cpu, now=now, waiting=waiting)
        picked = picked.id if isinstance(picked, _core.Task) else picked
        return _whole(picked, "pick", "a task or its number")
    task = _core.Task(*rest[0])
    if name == "enqueue":
        return bool(made.enqueue(task, now=rest[1], why=rest[2]))
    if name == "tick":
        return bool(made.tick(task, now=rest[1], ran_ns=rest[2]))
    if name == "dequeue":
        return made.dequeue(task, now=rest[1])
    quantum = made.quantum(task)
    return None if quantum is None else _whole(quantum, "quantum", "nanoseconds or None")


def _whole(value: Any, name: str, allowed: str) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{name} gave {value!r}: allowed is {allowed}")
    return value


def describe(candidate: Any) -> str:
    """The name of a candidate."""
    if inspect.isclass(candidate) or inspect.isfunction(candidate):
        return candidate.__name__
    return str(candidate)
