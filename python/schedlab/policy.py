# SPDX-License-Identifier: MIT OR Apache-2.0
"""Schedulers written in Python."""

from __future__ import annotations

from ._core import Task


class Policy:
    """The rules of a textbook scheduler. Derive a class and give it to :func:`schedlab.simulate`.

    All CPUs share one queue. The simulator checks every answer, and finds a task that is lost or
    starved.

    >>> import schedlab
    >>> class RoundRobin(schedlab.Policy):
    ...     def pick(self, cpu, *, now, waiting):
    ...         return waiting[0]
    ...     def quantum(self, task):
    ...         return 5_000_000
    >>> schedlab.simulate("hogs:n=2,work=10ms", RoundRobin).totals["makespan_ns"]
    20000000

    A derived class may also have these methods; the simulator calls them only if they are there:

    - ``dequeue(task, *, now)``: a waiting or running task blocks or exits
    - ``tick(task, *, now, ran_ns)``: a tick while ``task`` runs, for ``ran_ns`` in this turn; its
      turn ends if the answer is True
    - ``quantum(task)``: longest turn of ``task`` in nanoseconds, or None for no end

    Times are nanoseconds of simulated time.
    """

    def enqueue(self, task: Task, *, now: int, why: str) -> bool | None:
        """``task`` becomes runnable, or waits again.

        ``why`` is new, wakeup, preempted, expired, yielded or changed. If the answer is True, the
        task that runs on its CPU gives way, so that :meth:`pick` is asked at once.
        """
        return None

    def pick(self, cpu: int, *, now: int, waiting: list[int]) -> int | Task:
        """The next task of ``cpu``: one of the numbers in ``waiting``, which is never empty.

        The numbers are in the order in which the tasks began to wait.
        """
        raise NotImplementedError("a scheduler needs the method pick: add it")
