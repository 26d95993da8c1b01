# SPDX-License-Identifier: MIT OR Apache-2.0
"""Schedulers written in Python."""

import pytest
import schedlab
from hypothesis import given, settings
from hypothesis import strategies as st

MS = 1_000_000


class RoundRobin(schedlab.Policy):
    """The rules of ``rr`` with a quantum of 5 ms."""

    def pick(self, cpu, *, now, waiting):
        return waiting[0]

    def quantum(self, task):
        return 5 * MS


class ShortestFirst(schedlab.Policy):
    """Runs who ran least, and looks at ticks."""

    def __init__(self):
        self.ran = {}
        self.seen = []

    def enqueue(self, task, *, now, why):
        self.ran[task.id] = task.ran_ns
        self.seen.append((task.name, why, now))

    def pick(self, cpu, *, now, waiting):
        return min(waiting, key=lambda task: (self.ran[task], task))

    def tick(self, task, *, now, ran_ns):
        return ran_ns >= 4 * MS


def slices(workload, scheduler, **options):
    result = schedlab.simulate(workload, scheduler, keep="slices", **options)
    table = result.slices
    columns = ("cpu", "task", "start_ns", "end_ns", "end")
    return list(zip(*(table.column(name) for name in columns), strict=True))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["hogs", "interactive", "periodic", "queue", "hackbench:groups=1", "compile"]),
    st.integers(1, 4),
    st.integers(0, 2**64 - 1),
)
def test_round_robin_in_python_gives_the_slices_of_rr(workload, cpus, seed):
    options = {"cpus": cpus, "seed": seed, "until": "60ms"}
    mine = slices(workload, RoundRobin, **options)
    assert mine == slices(workload, "rr:quantum=5ms", **options)


def test_a_tick_ends_a_turn_and_the_name_is_the_class():
    result = schedlab.simulate("hogs:n=2,work=12ms", ShortestFirst, keep="slices", hz=1000)
    assert result.scheduler == "ShortestFirst"
    assert result.slices.column("task") == [0, 1, 0, 1, 0, 1]
    assert result.slices.column("end_ns")[0] == 4 * MS


def test_an_exception_comes_out_as_itself():
    class Broken(RoundRobin):
        def pick(self, cpu, *, now, waiting):
            return {}["no such key"]

    with pytest.raises(KeyError, match="no such key"):
        schedlab.simulate("hogs:n=2", Broken)

    class Unmade(RoundRobin):
        def __init__(self):
            raise RuntimeError("no table")

    with pytest.raises(RuntimeError, match="no table"):
        schedlab.simulate("hogs:n=2", Unmade)


def test_answers_are_checked():
    class Wrong(RoundRobin):
        def pick(self, cpu, *, now, waiting):
            return 77

    no_waiter = "task 77, which does not wait for CPU 0"
    with pytest.raises(schedlab.SchedlabError, match=no_waiter) as raised:
        schedlab.simulate("hogs:n=2", Wrong)
    assert raised.value.kind == "check"

    class Unfair(RoundRobin):
        def pick(self, cpu, *, now, waiting):
            return min(waiting)

    with pytest.raises(schedlab.SchedlabError, match="starved a task"):
        schedlab.simulate("hogs:n=2,work=9s", Unfair, watchdog="1s")

    class Never(RoundRobin):
        def quantum(self, task):
            return 0

    with pytest.raises(schedlab.SchedlabError, match="quantum of task .* is 0"):
        schedlab.simulate("hogs:n=2", Never)
    with pytest.raises(TypeError, match="give its class"):
        schedlab.simulate("hogs:n=2", RoundRobin())
    with pytest.raises(NotImplementedError, match="pick"):
        schedlab.simulate("hogs:n=2", schedlab.Policy)
    with pytest.raises(schedlab.SchedlabError, match="needs the method enqueue"):
        schedlab.simulate("hogs:n=2", object)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_whoever_is_picked_the_work_is_done(data):
    class Any(RoundRobin):
        def pick(self, cpu, *, now, waiting):
            return data.draw(st.sampled_from(waiting))

    result = schedlab.simulate("hogs:n=4,work=10ms", Any, cpus=2)
    assert result.totals["cpu_time_ns"] == 40 * MS
    assert result.totals["makespan_ns"] <= 30 * MS
