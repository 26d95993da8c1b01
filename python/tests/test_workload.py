# SPDX-License-Identifier: MIT OR Apache-2.0
"""Workloads read from files and built in Python."""

from pathlib import Path

import pytest
import schedlab
from hypothesis import given, settings
from hypothesis import strategies as st
from schedlab import Workload

ROOT = Path(__file__).parents[2]
MS = 1_000_000


def test_a_built_workload_does_what_it_says():
    mine = Workload("mine")
    mine.task("a", [("run", 3 * MS), ("sleep", "2ms"), ("run", "1ms")], nice=5)
    mine.task("b", [("run", "4ms")], delay=1 * MS, policy="fifo", priority=3, instances=2)
    result = schedlab.simulate(mine, "linux-6.12", costs="zero", cpus=1)
    assert result.workload == "mine"
    assert [task["name"] for task in result.tasks] == ["a", "b-0", "b-1"]
    assert [task["cpu_time_ns"] for task in result.tasks] == [4 * MS] * 3
    # Real-time tasks take the CPU as soon as they come.
    assert result.tasks[1]["turnaround_ns"] == 4 * MS


def test_objects_groups_and_expectations():
    mine = Workload("locks", duration="100ms").object("m", "mutex", protocol="inherit")
    mine.group("/a", weight=200)
    mine.task("one", [("lock", "m"), ("run", "2ms"), ("unlock", "m")], loop=3, taskgroup="/a")
    mine.expect("cpu_time_ns", "one", equal="6ms").expect("nr_switches", below=1)
    result = schedlab.simulate(mine, "linux-6.12", costs="zero")
    assert [found["holds"] for found in result.expectations] == [True, False]
    assert not result.holds


def test_a_file_is_read():
    path = ROOT / "crates/workload/examples/forks.json"
    result = schedlab.simulate(Workload.read(path), "rr", cpus=4)
    same = schedlab.simulate(path.read_text(), "rr", cpus=4, workload_name=str(path))
    assert result.json == same.json
    with pytest.raises(ValueError, match="is a file: add the task there"):
        Workload.read(path).task("more")
    with pytest.raises(schedlab.SchedlabError, match="broken.json:1:3"):
        schedlab.simulate(Workload.from_text('{ "x": 1 }', "broken.json"), "rr")


def test_mistakes_are_refused():
    mine = Workload().task("a", [("run", "1ms")])
    with pytest.raises(ValueError, match="already"):
        mine.task("a")
    with pytest.raises(ValueError, match="give one of them"):
        mine.task("b", nice=3, priority=4)
    assert Workload.builtin("hogs", n=2, work="1ms") == "hogs:n=2,work=1ms"


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 20 * MS), min_size=1, max_size=6),
    st.sampled_from(["rr", "fcfs", "linux-2.6.22", "linux-6.1", "linux-7.2", "stride"]),
    st.integers(1, 3),
)
def test_every_task_gets_the_time_that_it_asks_for(times, scheduler, cpus):
    mine = Workload("random")
    for number, time in enumerate(times):
        mine.task(f"t{number}", [("run", time)])
    result = schedlab.simulate(mine, scheduler, cpus=cpus, costs="zero")
    assert [task["cpu_time_ns"] for task in result.tasks] == times
    assert max(times) <= result.totals["makespan_ns"] <= sum(times)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_refused_or_simulated(text):
    try:
        schedlab.simulate(text, "rr", until="1ms")
    except schedlab.SchedlabError as error:
        assert error.kind == "usage" and error.text
