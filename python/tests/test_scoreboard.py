# SPDX-License-Identifier: MIT OR Apache-2.0
"""Scoreboards: factors, percentiles, intervals and medals."""

import math
from html.parser import HTMLParser

import pyarrow
import pytest
import schedlab
from hypothesis import given, settings
from hypothesis import strategies as st
from schedlab import _core, intervals
from schedlab.scoreboard import Scoreboard, page


class Sweep:
    """A sweep with given values: scheduler, workload, seed, value."""

    title = "given"

    def __init__(self, rows):
        self.rows = rows

    def table(self, columns):
        names = ("scheduler", "workload", "seed", columns[0])
        return pyarrow.Table.from_pylist(
            [dict(zip(names, row, strict=True)) | {"error": None, "cpus": 1} for row in self.rows]
        )


def board(values, measure="turnaround_ns_mean", **settings):
    """The scoreboard of one workload: the values of each scheduler by seed."""
    rows = [
        (name, "w", seed, value)
        for name, inner in values.items()
        for seed, value in enumerate(inner)
    ]
    return Scoreboard.of(Sweep(rows), measure, **settings)


def cell(found, scheduler):
    return next(one for one in found.cells if one.scheduler == scheduler)


def test_factors_are_ratios_of_geometric_means():
    found = board({"a": [100.0, 400.0], "b": [200.0, 800.0], "c": [100.0, 1600.0]})
    assert cell(found, "a").factor == 1
    assert cell(found, "b").factor == pytest.approx(2)
    assert cell(found, "c").factor == pytest.approx(2)
    assert found.schedulers()[0] == "a" and found.overall("a") == 1
    assert cell(found, "b").percentile(50) == 500 and cell(found, "b").percentile(90) == 740


def test_a_medal_needs_an_interval_that_is_apart():
    apart = board({"a": [100, 101, 99, 100], "b": [200, 203, 198, 200], "c": [400, 401, 399, 402]})
    # The last has none.
    assert [cell(apart, name).medal for name in "abc"] == ["gold", "silver", ""]
    # The leaders change places from block to block: neither is first.
    mixed = board({"a": [100, 120, 90, 130], "b": [110, 105, 101, 118], "c": [9e3] * 4})
    assert cell(mixed, "a").medal == cell(mixed, "b").medal == ""
    one = board({"a": [100], "b": [200]})
    assert {found.medal for found in one.cells} == {""} and math.isinf(one.cells[0].half)


def test_equal_schedulers_share_no_medal():
    twins = {"a": [5.0, 6.0, 7.0], "b": [5.0, 6.0, 7.0]}
    found = board({**twins, "c": [50.0, 60.0, 70.0], "d": [900.0] * 3})
    assert cell(found, "a").medal == cell(found, "b").medal == ""
    assert cell(found, "c").medal == "bronze"


def test_a_scheduler_names_those_that_it_is_not_apart_from():
    twins = {"a": [5.0, 6.0, 7.0], "b": [5.0, 6.0, 7.0], "c": [50.0, 60.0, 70.0]}
    found = board(twins)
    assert [one.rivals for one in found.cells] == [("b",), ("a",), ()]
    assert found.table().column("rivals").to_pylist() == [1, 1, 0]
    assert "1 of 1 workloads have no medal" in found.html()
    assert "not apart from b" in found.html()
    apart = board({"a": [5.0, 6.0, 7.0], "c": [50.0, 60.0, 70.0]})
    assert "have no medal" not in apart.html() and cell(apart, "a").medal == "gold"


def test_a_sweep_gives_medals_where_seeds_agree(tmp_path):
    """On one machine, by the run delay of sleepers among hogs."""
    text = """
name = "few"
[[experiment]]
name = "few"
workload = "interactive:n=8"
parameters = { cpus = 2 }
seeds = [1, 2, 3, 4, 5, 6, 7, 8]
until = "2s"
[[experiment.runs]]
lane = "sim"
schedulers = ["rr", "linux-2.6.22", "linux-6.12"]
"""
    found = schedlab.sweep(text, tmp_path).scoreboard("run_delay_ns_mean")
    medals = {one.scheduler: one.medal for one in found.cells}
    assert medals == {"linux-2.6.22": "gold", "linux-6.12": "silver", "rr": ""}


def test_more_is_better_for_throughput():
    found = board({"a": [10.0, 11.0], "b": [20.0, 22.0]}, "throughput_per_s")
    assert found.is_higher_better and found.schedulers() == ["b", "a"]
    assert cell(found, "a").factor == pytest.approx(2)
    assert not board({"a": [1.0]}, "throughput_per_s", better="lower").is_higher_better
    with pytest.raises(ValueError, match="better is 'more'"):
        board({"a": [1.0]}, better="more")


def test_a_scheduler_without_a_block_is_left_out_and_named():
    found = board({"a": [1.0, 2.0], "b": [3.0]})
    assert [one.scheduler for one in found.cells] == ["a"]
    assert found.left_out == ["b under w: it does not run in every block"]


class Reader(HTMLParser):
    """Checks that tags are closed in order, and counts cells."""

    def __init__(self, text):
        super().__init__()
        self.open, self.cells = [], 0
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag != "meta":
            self.open.append(tag)
        self.cells += tag == "td"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_page_has_every_cell_and_escapes_names(tmp_path):
    found = board({"<a>": [100, 101], "b": [200, 203]})
    assert Reader(page([found])).cells == 2 + 2
    assert "&lt;a&gt;" in page([found]) and "<a>" not in page([found])
    found.write(tmp_path / "page.html", found)
    text = (tmp_path / "page.html").read_text()
    assert text.count("<h2>") == 2 and "http" not in text
    assert pyarrow.table(found).num_rows == 2


def test_the_scoreboard_of_a_sweep_has_parameters_and_tunables_in_its_names(tmp_path):
    text = """
name = "x"
[[experiment]]
name = "x"
workload = "interactive"
axes.n = [1, 4]
axes.cpus = [1, 2]
seeds = [1, 2, 3]
until = "500ms"
[[experiment.runs]]
lane = "sim"
schedulers = ["fcfs"]
[[experiment.runs]]
lane = "sim"
schedulers = ["rr"]
set = { quantum = ["1ms", "50ms"] }
"""
    found = schedlab.sweep(text, tmp_path).scoreboard("run_delay_ns_mean")
    assert {one.workload for one in found.cells} == {"interactive:n=1", "interactive:n=4"}
    assert set(found.schedulers()) == {"fcfs", "rr:quantum=1ms", "rr:quantum=50ms"}
    assert {len(one.values) for one in found.cells} == {6}


def test_quantiles_of_t_are_those_of_the_program():
    for degrees in (1, 2, 5, 9, 29, 30, 31, 100):
        wanted = _core.t_975(degrees)
        assert intervals.t_quantile(0.975, degrees) == pytest.approx(wanted, rel=1e-6)


NUMBERS = st.lists(st.floats(1, 1e9), min_size=2, max_size=20)


@settings(deadline=None)
@given(NUMBERS, st.floats(0.5, 2))
def test_a_factor_does_not_depend_on_the_unit(values, scale):
    one = board({"a": values, "b": [value * 2 for value in values]})
    scaled = [value * scale for value in values]
    other = board({"a": scaled, "b": [value * 2 for value in scaled]}, floor=0.1)
    assert cell(other, "b").factor == pytest.approx(cell(one, "b").factor, rel=1e-6)


@settings(deadline=None)
@given(NUMBERS)
def test_the_interval_has_the_mean_and_kendalls_tau_its_ends(values):
    half = intervals.half_width(values, 0.95)
    assert half >= 0
    ranks = list(range(len(values)))
    assert intervals.kendall_tau(ranks, [2.0 * rank for rank in ranks]) == 1
    assert intervals.kendall_tau(ranks, [-rank for rank in ranks]) == -1
