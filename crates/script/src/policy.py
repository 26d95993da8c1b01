# SPDX-License-Identifier: MIT OR Apache-2.0
"""The process of a policy in Python: locks itself up, reads the policy, answers for its callbacks.

Runs as `python3 -S -s -B -c GLUE SECONDS BYTES` with a socket as descriptors 0 and 1. A message is
a line of JSON in either direction. The first one answered is "ready"; then comes the text of the
policy, then one question a line: the name of a callback and its arguments.

With the numbers of sockets behind BYTES, a process is forked for each of them, which starts no
interpreter. The Python package runs a file so, and calls `serve` for a class.
"""

import bisect
import collections
import ctypes
import dataclasses
import enum
import fractions
import functools
import heapq
import itertools
import json
import math
import operator
import os
import platform
import random
import resource
import sys
import types
import typing

MODULES = (
    "__future__ bisect collections dataclasses enum fractions functools heapq itertools math "
    "operator random typing schedlab"
).split()
"""What a policy may import."""

WITHOUT = "open input breakpoint help exit quit copyright credits license".split()
"""Built-in functions that it does not see: the process has nothing to open and nobody to ask."""

CALLBACKS = ("enqueue", "dequeue", "pick", "tick", "quantum")

MACHINES = {
    # Number of the architecture; what memory, locks and the end of a process need, and read(2) and
    # write(2), of which each works only with what is already open.
    "x86_64": (
        0xC000003E,
        (0, 1, 3, 5, 8, 9, 10, 11, 12, 13, 14, 15, 25, 28, 39, 60, 131, 186, 202, 231),
    ),
    "aarch64": (
        0xC00000B7,
        (57, 62, 63, 64, 80, 93, 94, 98, 132, 134, 135, 139, 172, 178, 214, 215, 216, 222, 226)
        + (233,),
    ),
}


class Instruction(ctypes.Structure):
    """struct sock_filter."""

    _fields_ = [
        ("code", ctypes.c_uint16),
        ("jt", ctypes.c_uint8),
        ("jf", ctypes.c_uint8),
        ("k", ctypes.c_uint32),
    ]


class Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.POINTER(Instruction))]


def lock_up(seconds, size):
    """From here on the kernel refuses every system call but those of MACHINES, and ends the process
    if it takes too long. An error says why this machine cannot do that."""
    if platform.machine() not in MACHINES:
        raise OSError(f"no list of system calls for {platform.machine()}")
    number, calls = MACHINES[platform.machine()]
    load, equal, give = 0x20, 0x15, 0x06
    refuse, allow, end = 0x00050001, 0x7FFF0000, 0x80000000
    code = [(load, 0, 0, 4), (equal, 1, 0, number), (give, 0, 0, end), (load, 0, 0, 0)]
    for call in calls:
        code += [(equal, 0, 1, call), (give, 0, 0, allow)]
    code.append((give, 0, 0, refuse))
    array = (Instruction * len(code))(*code)
    program = Program(len(code), array)
    libc = ctypes.CDLL(None, use_errno=True)
    prctl = libc.prctl
    prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 2)
    try:
        last = max(map(int, os.listdir("/proc/self/fd")))
    except OSError:
        last = 1 << 16
    os.closerange(3, last + 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    if prctl(38, 1, 0, 0, 0) or prctl(22, 2, ctypes.addressof(program), 0, 0):
        raise OSError(f"the kernel sets no filter: {os.strerror(ctypes.get_errno())}")


class Task:
    """What a policy sees of a task. Times are nanoseconds."""

    __slots__ = ("id", "name", "nice", "policy", "prio", "cpu", "ran_ns", "released_ns")

    def __init__(
        self, id, name="task", nice=0, policy="OTHER", prio=120, cpu=0, ran_ns=0, released_ns=0
    ):
        self.id, self.name, self.nice, self.policy = id, name, nice, policy
        self.prio, self.cpu, self.ran_ns, self.released_ns = prio, cpu, ran_ns, released_ns

    def __eq__(self, other):
        return isinstance(other, Task) and self.id == other.id

    def __hash__(self):
        return self.id

    def __repr__(self):
        return f"Task({self.id}, {self.name!r})"


class Policy:
    """The base class of schedulers, as in the Python package."""

    def enqueue(self, task, *, now, why):
        return None

    def pick(self, cpu, *, now, waiting):
        raise NotImplementedError("a scheduler needs the method pick: add it")


def package():
    """What `import schedlab` gives."""
    module = types.ModuleType("schedlab")
    module.Policy, module.Task = Policy, Task
    return module


def text_of(error):
    """The exception with the last line of the policy that it passed."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILE:
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename == FILE:
        line, text = error.lineno or 0, error.msg
    else:
        text = str(error)
    if isinstance(error, PermissionError):
        text += " (a policy may only compute: it has no files, processes, network or sleep)"
    if isinstance(error, ModuleNotFoundError):
        text += " (a policy reads no files: import modules before it starts)"
    name = type(error).__name__
    return f"{f'line {line}: ' if line else ''}{name}{': ' if text else ''}{text}"[:500]


FILE = "policy.py"


def read(source):
    """The object of the last scheduler in the text."""
    builtins = {
        name: value
        for name, value in vars(sys.modules["builtins"]).items()
        if name not in WITHOUT
    }
    original = builtins["__import__"]

    def importer(name, globals=None, locals=None, fromlist=(), level=0):
        if level or name.split(".")[0] not in MODULES:
            raise ImportError(f"a policy cannot import {name}: allowed are {', '.join(MODULES)}")
        return original(name, globals, locals, fromlist, level)

    builtins["__import__"] = importer
    builtins["print"] = lambda *_, **__: None
    names = {"__name__": "policy", "__builtins__": builtins}
    exec(compile(source, FILE, "exec", dont_inherit=True), names)
    found = [
        value
        for value in names.values()
        if isinstance(value, type) and issubclass(value, Policy) and value is not Policy
    ]
    if not found:
        raise ValueError("the file has no class of schedlab.Policy: add one")
    return found[-1]()


def callbacks(made):
    """The callbacks that it has."""
    names = [name for name in CALLBACKS if callable(getattr(made, name, None))]
    if "pick" not in names or getattr(type(made), "pick", None) is Policy.pick:
        raise TypeError("a scheduler needs the method pick: add it")
    if getattr(type(made), "enqueue", None) is Policy.enqueue:
        names.remove("enqueue")
    return names


def whole(value, name, allowed):
    """A whole number from 0, or an error that says what is allowed."""
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise TypeError(f"{name} returned {value!r}: return {allowed}")
    return value


def answer(made, name, rest):
    """What a callback says."""
    if name == "pick":
        cpu, now, waiting = rest
        picked = made.pick(cpu, now=now, waiting=list(waiting))
        picked = whole(picked.id if isinstance(picked, Task) else picked, name, "a waiting task")
        if picked not in waiting:
            shown = ", ".join(map(str, waiting[:8]))
            raise ValueError(f"pick returned {picked}: return one of the waiting tasks, {shown}")
        return picked
    if name == "seed":
        random.seed(rest[0])
        return 0
    task = Task(*rest[0])
    if name == "enqueue":
        return int(bool(made.enqueue(task, now=rest[1], why=rest[2])))
    if name == "dequeue":
        made.dequeue(task, now=rest[1])
        return 0
    if name == "tick":
        return int(bool(made.tick(task, now=rest[1], ran_ns=rest[2])))
    quantum = made.quantum(task)
    return None if quantum is None else whole(quantum, name, "nanoseconds, or None")


def send(value):
    content = json.dumps(value).encode() + b"\n"
    while content:
        content = content[os.write(1, content) :]


def questions():
    """The messages of the simulator."""
    rest = b""
    while True:
        part = os.read(0, 1 << 16)
        if not part:
            return
        *lines, rest = (rest + part).split(b"\n")
        yield from map(json.loads, lines)


def serve(make, seconds, size):
    """The life of the process. `make` gets the first question and returns the policy."""
    try:
        lock_up(seconds, size)
    except (OSError, ValueError) as error:
        send(["unavailable", str(error)])
        return
    send("ready")
    asked = questions()
    try:
        made = make(next(asked))
        send(callbacks(made))
        for name, *rest in asked:
            send(answer(made, name, rest))
    except BaseException as error:
        send({"error": text_of(error)})


def tie():
    """Makes the kernel end this process with the one that started it."""
    ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)


def fork(sockets):
    """Forks a process for each of these sockets, which becomes its standard input and output. In
    this process the answer is False, as soon as all others have ended."""
    tie()
    for socket in sockets:
        if os.fork() == 0:
            tie()
            os.dup2(socket, 0)
            os.dup2(socket, 1)
            return True
    for socket in sockets:
        os.close(socket)
    for _ in sockets:
        os.wait()
    return False


def main():
    sys.path.clear()
    sys.modules["schedlab"] = package()
    seconds, size, *sockets = map(int, sys.argv[1:])
    if not sockets or fork(sockets):
        serve(read, seconds, size)


if __name__ == "__main__":
    try:
        main()
    finally:
        # Not by Python's own end, which may need what is refused.
        os._exit(0)
