# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs on this kernel, and traces, by the command line program."""

import json
import os
import subprocess

import pyarrow
import pytest
import schedlab

WORKLOAD, SCHEDULER = "interactive:n=2", "linux-6.12"


@pytest.fixture(scope="module")
def program():
    """The program of this build."""
    found = os.environ.get("SCHEDLAB_PROGRAM")
    if not found:
        pytest.skip("SCHEDLAB_PROGRAM names no program")
    return found


@pytest.fixture(scope="module")
def trace(program, tmp_path_factory):
    """A trace of a simulated run."""
    path = tmp_path_factory.mktemp("trace") / "run.slt"
    words = ["sim", WORKLOAD, "--scheduler", SCHEDULER, "--until", "200ms", "--trace", str(path)]
    subprocess.run([program, *words], check=True, capture_output=True)
    return path


def test_a_trace_has_the_slices_of_its_run(program, trace):
    found = schedlab.analyse(trace, program=program)
    made = schedlab.simulate(WORKLOAD, SCHEDULER, until="200ms", keep="slices")
    assert found.data["lane"] == "trace" and found.workload == "run"
    assert pyarrow.table(found.slices).equals(pyarrow.table(made.slices))
    assert found.end_ns == made.end_ns and found.names == made.names
    delays = [result.totals["run_delay"]["ns_mean"] for result in (found, made)]
    assert delays[0] == delays[1]
    assert "<svg" in found.timeline() and "<svg" in found._repr_html_()


def test_the_text_is_that_of_the_command_line(program, trace):
    found = schedlab.analyse(trace, program=program, keep="analysis", starved_after="1ms")
    words = ["analyse", str(trace), "--json", "--analysis", "--starved-after=1ms"]
    done = subprocess.run([program, *words], check=True, capture_output=True, text=True)
    assert found.json == done.stdout and found.data["analysis"]
    assert len(found.slices) == 0


def test_a_part_and_one_task(program, trace):
    between = ("50ms", 150_000_000)
    found = schedlab.analyse(trace, program=program, tasks=["sleeper"], between=between)
    assert [task["name"] for task in found.tasks] == ["sleeper"]
    assert set(found.slices.column("name")) == {"sleeper"}
    assert min(found.slices.column("start_ns")) >= 50_000_000
    assert max(found.slices.column("end_ns")) <= 150_000_000


def test_errors_are_those_of_the_program(program, trace, tmp_path):
    text = tmp_path / "no-trace"
    text.write_text("nothing\n")
    with pytest.raises(schedlab.SchedlabError, match="no-trace") as raised:
        schedlab.analyse(text, program=program)
    assert raised.value.kind == "usage"
    with pytest.raises(schedlab.SchedlabError, match="name or process id") as raised:
        schedlab.analyse(trace, tasks=["nobody"], program=program)
    assert raised.value.kind == "usage"
    with pytest.raises(schedlab.SchedlabError, match="name it with program=") as raised:
        schedlab.analyse(trace, program="./no-program")
    assert raised.value.kind == "unavailable"
    with pytest.raises(ValueError, match="allowed are slices, progress, analysis"):
        schedlab.analyse(trace, keep="states", program=program)
    with pytest.raises(TypeError, match="either a workload or a command"):
        schedlab.run(program=program)
    with pytest.raises(schedlab.SchedlabError, match="has no parameter"):
        schedlab.run("hogs:q=1", program=program)


def on_this_machine(*given, **settings):
    """A result of :func:`schedlab.run`; the test is skipped if this machine cannot make one."""
    try:
        return schedlab.run(*given, **settings)
    except schedlab.SchedlabError as error:
        if error.kind != "unavailable":
            raise
        return pytest.skip(str(error))


def test_a_workload_runs_on_this_kernel(program):
    mine = schedlab.Workload("mine")
    mine.task("worker", [("run", "2ms"), ("sleep", "1ms")], loop=3, instance=2)
    result = on_this_machine(mine, cpus=1, program=program)
    assert result.data["lane"] == "host" and result.workload == "mine"
    assert sorted(task["name"] for task in result.tasks) == ["worker-0", "worker-1"]
    ran = sum(task["cpu_time_ns"] for task in result.tasks)
    assert ran > 10_000_000
    names = set(pyarrow.table(result.slices).column("name").to_pylist())
    assert names == {"worker-0", "worker-1"}
    assert json.loads(result.json) == result.data


def test_copies_of_a_command_run_on_this_kernel(program):
    result = on_this_machine(command=["true"], copies=2, cpus=1, keep=(), program=program)
    assert len(result.tasks) == 2 and len(result.slices) == 0
