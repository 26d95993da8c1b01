# SPDX-License-Identifier: MIT OR Apache-2.0
"""A Gymnasium environment: an agent picks the next task at each decision.

It needs the extra ``gym`` (``pip install './python[gym]'``). The simulation stops before each
decision and goes on with the answer, without a thread.
"""

from __future__ import annotations

import json
import math
from typing import Any

import gymnasium
import numpy
from gymnasium import spaces

from . import _core
from .simulator import Duration, request
from .workload import Workload

FEATURES = ("present", "nice", "ran", "waited", "age")
"""What an agent sees of each candidate, from 0 to 1: whether there is one, its nice value, and its
CPU time, its present wait and the time since its release (logarithms of nanoseconds)."""


DRAWS_MAX = 100
"""So many runs without a decision at most are drawn for an episode."""


def _scaled(ns: int) -> float:
    return math.log2(1 + ns) / 64


class SchedulerEnv(gymnasium.Env[numpy.ndarray, numpy.int64]):
    """An agent picks which task a CPU runs next, among two or more.

    The observation has a row for each candidate (:data:`FEATURES`), in the order in which they
    began to wait; rows without a candidate are 0. The action is the number of a row. An action
    without a candidate runs the first one, and ``info["is_valid"]`` is False.

    The reward is minus the time (ms) that tasks have waited for a CPU since the last decision,
    summed over all tasks: an agent that gets the most keeps the mean run delay shortest. An episode
    ends with its run. ``info`` has ``now_ns``, ``cpu``, ``tasks`` (numbers of the candidates),
    ``action_mask``, and at the end ``measures``.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        workload: str | Workload = "queue",
        *,
        quantum: Duration | None = "5ms",
        candidates: int = 16,
        **settings: Any,
    ) -> None:
        """``quantum`` is the longest turn of a task; None: until it blocks. ``candidates`` is the
        number of rows: further candidates are not shown. Settings are those of
        :func:`schedlab.simulate`; :meth:`reset` chooses the seed unless it is given here."""
        self._quantum_ns = None if quantum is None else _ns(quantum)
        self._rows = candidates
        self._seed = settings.pop("seed", None)
        self._request = request(workload, "agent", **settings)
        _core.Episode(json.dumps(self._request), self._quantum_ns)
        self._episode: _core.Episode | None = None
        shape = (candidates, len(FEATURES))
        self.observation_space = spaces.Box(0.0, 1.0, shape, numpy.float32)
        self.action_space = spaces.Discrete(candidates)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[numpy.ndarray, dict[str, Any]]:
        """Begin an episode. The same seed gives the same run.

        A run in which no CPU ever has a choice is no episode: another one is drawn.
        """
        super().reset(seed=seed)
        for _ in range(1 if self._seed is not None else DRAWS_MAX):
            drawn = int(self.np_random.integers(0, 2**63)) if self._seed is None else self._seed
            asked = {**self._request, "seed": drawn}
            self._episode = _core.Episode(json.dumps(asked), self._quantum_ns)
            if not self._episode.has_ended:
                return self._observed(), self._info(True)
        raise ValueError(
            "no CPU has a choice between two tasks in this workload: give it more tasks or fewer "
            "CPUs, a later until, or another seed"
        )

    def step(
        self, action: numpy.int64 | int
    ) -> tuple[numpy.ndarray, float, bool, bool, dict[str, Any]]:
        """Run the task in row ``action``, up to the next decision."""
        episode = self._episode
        if episode is None or episode.has_ended:
            raise gymnasium.error.ResetNeeded("the episode has ended: call reset")
        tasks = [candidate.task for candidate in episode.candidates][: self._rows]
        is_valid = 0 <= int(action) < len(tasks)
        before = episode.waited_ns
        goes_on = episode.decide(tasks[int(action)] if is_valid else tasks[0])
        reward = (before - episode.waited_ns) / 1e6
        return self._observed(), reward, not goes_on, False, self._info(is_valid)

    def _observed(self) -> numpy.ndarray:
        rows = numpy.zeros((self._rows, len(FEATURES)), dtype=numpy.float32)
        candidates = self._episode.candidates if self._episode is not None else []
        for row, one in zip(rows, candidates, strict=False):
            nice = (one.nice + 20) / 40
            row[:] = 1, nice, _scaled(one.ran_ns), _scaled(one.waited_ns), _scaled(one.age_ns)
        return rows

    def _info(self, is_valid: bool) -> dict[str, Any]:
        episode = self._episode
        assert episode is not None
        tasks = [candidate.task for candidate in episode.candidates][: self._rows]
        mask = numpy.zeros(self._rows, dtype=numpy.int8)
        mask[: len(tasks)] = 1
        info: dict[str, Any] = {
            "now_ns": episode.now_ns,
            "cpu": episode.cpu,
            "tasks": tasks,
            "action_mask": mask,
            "is_valid": is_valid,
        }
        if episode.has_ended:
            info["measures"] = json.loads(episode.measures_json())
        return info


UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}


def _ns(value: Duration) -> int:
    if isinstance(value, int):
        return value
    for unit in ("ns", "us", "ms", "s"):
        number = value.removesuffix(unit)
        if number != value and number.isdigit():
            return int(number) * UNITS[unit]
    raise ValueError(f'quantum is {value!r}: allowed are nanoseconds, or text such as "5ms"')
