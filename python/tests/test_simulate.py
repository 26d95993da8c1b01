# SPDX-License-Identifier: MIT OR Apache-2.0
"""Requests, results, errors, progress, and the display in notebooks."""

import json
import threading
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import schedlab

ROOT = Path(__file__).parents[2]
MS = 1_000_000


def test_round_robin_by_hand():
    keep = ["slices", "states", "queues"]
    result = schedlab.simulate("hogs:n=2,work=10ms", "rr:quantum=5ms", keep=keep)
    assert result.totals["makespan_ns"] == 20 * MS
    assert [task["turnaround_ns"] for task in result.tasks] == [15 * MS, 20 * MS]
    slices = result.slices
    assert slices.column_names == ["cpu", "task", "name", "start_ns", "end_ns", "end"]
    assert slices.column("task") == [0, 1, 0, 1]
    assert slices.column("start_ns") == [0, 5 * MS, 10 * MS, 15 * MS]
    assert slices.column("end") == ["preempted", "preempted", "exited", "exited"]
    assert slices.column("name") == [result.names[task] for task in slices.column("task")]
    assert set(result.states.column("state")) == {"runnable", "running"}
    assert result.queues.column("nr_running") == [2, 1, 0]
    assert result.notes[0].startswith("note: switches and ticks cost nothing under rr")
    with pytest.raises(KeyError, match="allowed are cpu, task"):
        slices.column("tasks")


def test_nothing_is_kept_that_was_not_asked_for():
    result = schedlab.simulate("hogs:n=2,work=10ms", "rr")
    assert len(result.slices) == len(result.states) == len(result.queues) == 0
    assert result.digest is None
    with pytest.raises(ValueError, match='keep="slices"'):
        result.timeline()
    with pytest.raises(ValueError, match="allowed are slices, states"):
        schedlab.simulate("hogs", "rr", keep="slice")


def test_errors_are_those_of_the_command_line():
    with pytest.raises(schedlab.SchedlabError) as raised:
        schedlab.simulate("hogs", "linux-6.13")
    error = raised.value
    assert error.kind == "usage" and error.line is None
    assert "nearest are linux-6.12 and linux-6.18" in error.text
    assert error.help.startswith("`schedlab list schedulers`")
    assert str(error) == f"{error.text}; {error.help}"
    with pytest.raises(schedlab.SchedlabError) as raised:
        schedlab.simulate('{\n  "taks": {}\n}', "rr", workload_name="mine.json")
    assert (raised.value.line, raised.value.column) == (2, 3)
    assert str(raised.value).startswith('mine.json:2:3: the file knows no key "taks"')
    for settings in [{"cpus": 0}, {"hz": 7}, {"until": "5"}, {"nice": 20}, {"costs": "free"}]:
        with pytest.raises(schedlab.SchedlabError, match="allowed|no unit|unit"):
            schedlab.validate("hogs", "rr", **settings)
    schedlab.validate("hogs", "rr", cpus=2, costs="zero", until=5 * MS)


def test_settings_count():
    base = {"cpus": 2, "seed": 7, "until": "50ms"}
    first = schedlab.simulate("hogs:n=3", "linux-6.12", **base)
    assert first.json == schedlab.simulate("hogs:n=3", "linux-6.12", **base).json
    settings = {setting["name"]: setting["value"] for setting in first.data["machine"]["settings"]}
    assert settings["linux-6.12.base_slice"] == "0ns"
    for change in [
        {"costs": {"context_switch_ns": 50_000}},
        {"tunables": {"base_slice": "1ms"}},
        {"machine": "laptop"},
        {"preempt": "none"},
        {"hz": 1000},
    ]:
        assert schedlab.simulate("hogs:n=3", "linux-6.12", **base, **change).json != first.json


def test_progress_is_called_and_can_cancel():
    times: list[int] = []
    schedlab.simulate("hogs:n=4,work=2s", "rr:quantum=100us", progress=times.append)
    assert times == sorted(times) and len(times) > 10
    with pytest.raises(schedlab.SchedlabError, match="cancelled at") as raised:
        schedlab.simulate("hogs:n=4,work=2s", "rr:quantum=100us", progress=lambda now: now < MS)
    assert raised.value.kind == "cancelled"

    def fails(now: int) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        schedlab.simulate("hogs:n=4,work=2s", "rr:quantum=100us", progress=fails)


def test_other_threads_run_meanwhile():
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = counted
    schedlab.simulate("hogs:n=8,work=20s", "rr:quantum=1ms")
    meanwhile = counted - before
    done.set()
    thread.join()
    assert meanwhile > 100


def test_explain_says_why():
    answer = schedlab.explain("hogs:n=2,work=10ms", "rr:quantum=5ms", at_ns=6 * MS)
    (decision,) = answer["decisions"]
    assert decision["time_ns"] == 5 * MS
    assert decision["contests"][0]["candidates"]
    wait = schedlab.explain("hogs:n=2,work=10ms", "rr:quantum=5ms")["wait"]
    assert wait is not None


def test_lists():
    names = [scheduler["name"] for scheduler in schedlab.schedulers()]
    assert len(names) == len(set(names)) > 30 and "linux-6.12" in names
    (rr,) = (scheduler for scheduler in schedlab.schedulers() if scheduler["name"] == "rr")
    assert rr["tunables"][0]["name"] == "quantum" and rr["tunables"][0]["default"] == 100 * MS
    assert {"hogs", "hackbench"} <= {workload["name"] for workload in schedlab.workloads()}
    assert "laptop" in schedlab.machines()


def test_a_notebook_shows_measures_and_timeline():
    result = schedlab.simulate("hogs:n=3,work=10ms", "rr:quantum=5ms", cpus=2, keep="slices")
    html = result._repr_html_()
    assert "makespan_ns" in html and "rr" in html
    svg = ElementTree.fromstring(result.timeline())
    rects = svg.findall("{http://www.w3.org/2000/svg}rect")
    assert len(rects) == len(result.slices)
    assert all(float(rect.attrib["x"]) + float(rect.attrib["width"]) <= 900 for rect in rects)
    assert "<svg" not in schedlab.simulate("hogs:n=2,work=1ms", "rr")._repr_html_()


def test_requests_have_the_digests_of_the_command_line():
    """The same 200 requests and digests as natively and in wasm."""
    requests = (ROOT / "tests/requests/requests.jsonl").read_text().splitlines()
    digests = (ROOT / "tests/requests/digests.txt").read_text().splitlines()
    assert len(requests) == len(digests) == 200
    for number, (line, wanted) in enumerate(zip(requests, digests, strict=True), 1):
        request = json.loads(line)
        workload, scheduler = request.pop("workload"), request.pop("scheduler")
        try:
            result = schedlab.simulate(workload, scheduler, keep="digest", **request)
        except schedlab.SchedlabError as error:
            found = f"{error.kind}: {error}"
        else:
            assert result.digest is not None
            found = f"{result.digest.result} {result.digest.events}"
        assert found == wanted, f"request {number}: {line}"
