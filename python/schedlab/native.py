# SPDX-License-Identifier: MIT OR Apache-2.0
"""Schedulers in C: the command line program compiles and simulates them."""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .remote import Broken
from .simulator import text_of_time

USAGE, UNAVAILABLE = 2, 3
"""Exit codes of the program: wrong arguments or a wrong file; this machine cannot do it."""

OPTIONS = ("cpus", "hz", "policy", "preempt", "priority", "nice", "seed", "until", "watchdog")
"""Settings that are options of the program under the same name."""

FILES = {"machine": ".toml", "costs": ".toml"}
"""Settings that may be the text of a file."""

TEXT_MAX = 500
LATE = "it took too long"


class Native:
    """A ``.bpf.c``."""

    def __init__(self, program: str, path: Path) -> None:
        self._program, self._path = program, path
        self._compiling = threading.Lock()
        self._why: str | None = None
        self._is_compiled = False

    def run(self, workload: str, settings: Mapping[str, Any], until: float) -> dict[str, Any]:
        """The result of a run, which must end at this time of the clock.

        Raises :class:`Broken` if the scheduler does not compile or fails.
        """
        with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
            file = Path(folder, "case.json")
            file.write_text(workload, encoding="utf-8")
            options = _options(settings, Path(folder))
            self._compile(until)
            done = self._call([str(file), *options], until)
        if done.returncode == USAGE:
            # It compiles, so the settings are wrong.
            raise ValueError(message(done.stderr))
        if done.returncode != 0:
            raise Broken(message(done.stderr)[:TEXT_MAX])
        found = json.loads(done.stdout)
        return found[0] if isinstance(found, list) else found

    def _compile(self, until: float) -> None:
        """Let the program compile it, once; later runs find the compiled file."""
        with self._compiling:
            if not self._is_compiled:
                try:
                    # A run of one task that is too short to be more than a question.
                    done = self._call(["hogs:n=1,work=1us"], until)
                    if done.returncode == USAGE:
                        self._why = message(done.stderr)[:TEXT_MAX]
                except Broken as error:
                    self._why = str(error)
                self._is_compiled = True
        if self._why is not None:
            raise Broken(self._why)

    def _call(self, words: list[str], until: float) -> subprocess.CompletedProcess[str]:
        command = [self._program, "sim", *words, "--scheduler", str(self._path), "--json"]
        left = until - time.time()
        if left <= 0:
            raise Broken(LATE)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=left
            )
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"{self._program} is no program: a .bpf.c needs the command line program; install "
                "it, or name it with program="
            ) from error
        except subprocess.TimeoutExpired as error:
            raise Broken(LATE) from error
        if done.returncode == UNAVAILABLE:
            raise RuntimeError(message(done.stderr))
        return done


def _options(settings: Mapping[str, Any], folder: Path) -> list[str]:
    """Settings of :func:`schedlab.simulate` as options of the program."""
    options = []
    for name, value in settings.items():
        if name == "tunables":
            for tunable, own in value.items():
                options += ["--set", f"{tunable}={own}"]
            continue
        if name not in OPTIONS and name not in FILES:
            allowed = ", ".join(sorted((*OPTIONS, *FILES, "tunables")))
            raise ValueError(f"{name} cannot be set for a .bpf.c: allowed are {allowed}")
        if name == "costs" and isinstance(value, Mapping):
            value = "".join(f"{cost} = {ns}\n" for cost, ns in value.items())
        if name in ("until", "watchdog"):
            value = text_of_time(value)
        if name in FILES and "=" in str(value):
            file = folder / (name + FILES[name])
            file.write_text(value, encoding="utf-8")
            value = file
        options += [f"--{name}", str(value)]
    return options


def message(text: str) -> str:
    """The error of the program in one line, without its frame."""
    lines = text.splitlines()
    first = next((at for at, line in enumerate(lines) if line.startswith("Error:")), 0)
    words = " ".join(lines[first:]).removeprefix("Error:").split()
    return " ".join(word for word in words if word not in ("\N{MULTIPLICATION SIGN}", "\u2502"))
