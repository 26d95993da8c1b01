# SPDX-License-Identifier: MIT OR Apache-2.0
"""The scoreboard of a sweep: schedulers against workloads, as a table and as one page of HTML."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow

from . import _core
from .intervals import half_width, mean, percentile
from .timeline import time_text

if TYPE_CHECKING:
    from .sweeps import Sweep

HIGHER = ("throughput_per_s", "jain_index", "utilisation")
"""Measures of which more is better. Of all others less is."""

MEDALS = ("gold", "silver", "bronze")
UNITS = dict(_core.list_measures())
LEVEL = 0.95
"""Probability that no medal of a workload is due to chance alone."""


@dataclass(frozen=True)
class Cell:
    """A scheduler under a workload."""

    scheduler: str
    workload: str
    values: list[float]
    """The measure in each block: machine, CPUs, seed."""
    factor: float
    """How many times the best scheduler's geometric mean; 1 is the best."""
    half: float
    """Half of the interval of the factor's logarithm, against the mean of all schedulers."""
    medal: str = ""
    """gold, silver, bronze, or empty."""
    rivals: tuple[str, ...] = ()
    """The schedulers that it is not apart from, the best first. With a medal there are none."""

    def percentile(self, percent: float) -> float:
        """A percentile of the measure over the blocks."""
        return percentile(self.values, percent)


@dataclass
class Scoreboard:
    """Schedulers against workloads by one measure.

    A *block* is everything else that varies: machine, CPUs, seed, repetition. Each scheduler runs
    in every block, so that schedulers are compared in pairs: the mean of the differences of the
    measure's logarithm over the blocks, with Student's interval. Two schedulers are *apart* if the
    interval excludes 0. A place has a medal only if its scheduler is apart from every other one.
    The intervals of a workload hold together with 95 % (Bonferroni).
    """

    title: str
    measure: str
    is_higher_better: bool
    cells: list[Cell]
    left_out: list[str] = field(default_factory=list)
    """What has no cell, and why."""

    @classmethod
    def of(
        cls, sweep: Sweep, measure: str, *, better: str | None = None, floor: float = 1.0
    ) -> Scoreboard:
        """The scoreboard of a sweep. ``better`` is lower or higher [default: by the measure].
        Values below ``floor`` count as this one, since logarithms need it."""
        if better not in (None, "lower", "higher"):
            raise ValueError(f"better is {better!r}: allowed are lower and higher")
        is_higher = measure in HIGHER if better is None else better == "higher"
        floor = floor if UNITS.get(measure) in ("ns", "count") else min(floor, 1e-9)
        board = cls(sweep.title, measure, is_higher, [])
        columns: dict[str, dict[str, dict[Any, float]]] = defaultdict(lambda: defaultdict(dict))
        table = sweep.table([measure, "error"])
        fixed = {"run", "key", "error", measure, "scheduler", "workload", "experiment"}
        fixed |= {"cpus", "seed", "repetition", "machine", "hz"}
        varying = [name for name in table.column_names if name not in fixed]
        lost: dict[tuple[str, str], str] = {}
        for row in table.to_pylist():
            own = [(name, row[name]) for name in varying if row[name] is not None]
            sets = [f"{name[4:]}={value}" for name, value in own if name.startswith("set.")]
            given = [f"{name}={value}" for name, value in own if not name.startswith("set.")]
            scheduler = ":".join([row["scheduler"], ",".join(sets)]).rstrip(":")
            workload = ":".join([row["workload"], ",".join(given)]).rstrip(":")
            names = ("experiment", "machine", "cpus", "hz", "seed", "repetition")
            block = tuple(row.get(name) for name in names)
            value = row[measure]
            if value is None:
                lost[scheduler, workload] = row["error"] or f"it has no {measure}"
            columns[workload][scheduler][block] = math.nan if value is None else value
        for workload, found in columns.items():
            board._add(workload, found, lost, floor)
        board.left_out = _grouped(lost)
        return board

    def _add(
        self,
        workload: str,
        found: dict[str, dict[Any, float]],
        lost: dict[tuple[str, str], str],
        floor: float,
    ) -> None:
        """Add the cells of a workload. A scheduler that lacks a block has none."""
        blocks = {block for values in found.values() for block in values}
        whole: dict[str, list[float]] = {}
        for scheduler, values in found.items():
            inner = [values.get(block, math.nan) for block in sorted(blocks, key=repr)]
            if any(math.isnan(value) for value in inner):
                lost.setdefault((scheduler, workload), "it does not run in every block")
            else:
                whole[scheduler] = inner
        if not whole:
            return
        sign = -1 if self.is_higher_better else 1
        logs = {
            scheduler: [sign * math.log(max(value, floor)) for value in values]
            for scheduler, values in whole.items()
        }
        means = [mean(inner) for inner in zip(*logs.values(), strict=True)]
        ranked = sorted(logs, key=lambda scheduler: (mean(logs[scheduler]), scheduler))
        best = mean(logs[ranked[0]])
        rivals = _rivals([logs[scheduler] for scheduler in ranked])
        for place, scheduler in enumerate(ranked):
            own = [one - other for one, other in zip(logs[scheduler], means, strict=True)]
            factor = math.exp(mean(logs[scheduler]) - best)
            half = half_width(own, LEVEL)
            others = tuple(ranked[other] for other in rivals[place])
            # The last has none, however far it is behind.
            has_medal = not others and place < min(len(MEDALS), len(ranked) - 1)
            medal = MEDALS[place] if has_medal else ""
            values = whole[scheduler]
            self.cells.append(Cell(scheduler, workload, values, factor, half, medal, others))

    def schedulers(self) -> list[str]:
        """The schedulers, the best first: by the geometric mean of their factors."""
        factors: dict[str, list[float]] = defaultdict(list)
        for cell in self.cells:
            factors[cell.scheduler].append(math.log(cell.factor))
        most = max((len(own) for own in factors.values()), default=0)
        # Who lacks a workload cannot lead by it.
        return sorted(factors, key=lambda name: (len(factors[name]) < most, mean(factors[name])))

    def overall(self, scheduler: str) -> float:
        """The geometric mean of a scheduler's factors over all workloads."""
        logs = [math.log(cell.factor) for cell in self.cells if cell.scheduler == scheduler]
        return math.exp(mean(logs))

    def medals(self, scheduler: str) -> tuple[int, int, int]:
        """The numbers of a scheduler's gold, silver and bronze medals."""
        own = [cell.medal for cell in self.cells if cell.scheduler == scheduler]
        return own.count("gold"), own.count("silver"), own.count("bronze")

    def table(self) -> pyarrow.Table:
        """The cells: workload, scheduler, blocks, factor with the ends of its interval, the 10th,
        50th and 90th percentile of the measure over the blocks, medal, and the number of
        schedulers that it is not apart from."""
        rows = [
            {
                "workload": cell.workload,
                "scheduler": cell.scheduler,
                "measure": self.measure,
                "blocks": len(cell.values),
                "factor": cell.factor,
                "factor_low": cell.factor * math.exp(-cell.half),
                "factor_high": cell.factor * math.exp(min(cell.half, 700)),
                "p10": cell.percentile(10),
                "p50": cell.percentile(50),
                "p90": cell.percentile(90),
                "medal": cell.medal,
                "rivals": len(cell.rivals),
            }
            for cell in self.cells
        ]
        return pyarrow.Table.from_pylist(rows)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table().__arrow_c_stream__(requested_schema)

    def html(self) -> str:
        """The table as HTML."""
        return _table(self)

    def write(self, path: str | os.PathLike[str], *others: Scoreboard) -> None:
        """Write a page of HTML with this scoreboard, and others below."""
        Path(path).write_text(page([self, *others]), encoding="utf-8")

    def _repr_html_(self) -> str:
        return f"<div><style>{STYLE}</style>{self.html()}</div>"


def _rivals(ranked: list[list[float]]) -> list[list[int]]:
    """For each scheduler those that it is not apart from. The intervals of all pairs hold
    together."""
    count = len(ranked)
    level = 1 - (1 - LEVEL) / max(count * (count - 1) / 2, 1)
    rivals: list[list[int]] = [[] for _ in ranked]
    for first in range(count):
        for second in range(first + 1, count):
            between = [b - a for a, b in zip(ranked[first], ranked[second], strict=True)]
            if not mean(between) - half_width(between, level) > 1e-12:
                rivals[first].append(second)
                rivals[second].append(first)
    return [sorted(own) for own in rivals]


def _grouped(lost: dict[tuple[str, str], str]) -> list[str]:
    """What has no cell; the schedulers of a workload as one, if more than three share a reason."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (scheduler, workload), why in lost.items():
        groups[workload, why].append(scheduler)
    lines = []
    for (workload, why), found in groups.items():
        names = [f"{len(found)} schedulers"] if len(found) > 3 else found
        lines += [f"{name} under {workload}: {why}" for name in names]
    return lines


STYLE = """
.board { border-collapse: collapse; font: 13px/1.35 system-ui, sans-serif; }
.board th, .board td { padding: 3px 7px; border: 1px solid #8884; text-align: right; }
.board th { font-weight: 600; text-align: left; }
.board thead th { position: sticky; top: 0; background: Canvas; vertical-align: bottom; }
.board tbody th { position: sticky; left: 0; background: Canvas; white-space: nowrap; }
.board small { display: block; opacity: .75; white-space: nowrap; }
.board .medal { display: inline-block; min-width: 1.3em; border-radius: .7em; padding: 0 .2em;
  text-align: center; font-weight: 700; color: #000; margin-right: .3em; }
.board .gold { background: #f3c623; } .board .silver { background: #c8ccd0; }
.board .bronze { background: #d99058; }
.scroll { overflow: auto; max-height: 90vh; }
"""

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>:root {{ color-scheme: light dark; }} body {{ font: 15px/1.5 system-ui, sans-serif;
  margin: 1.5rem; }} p {{ max-width: 46rem; }}{style}</style></head>
<body><h1>{title}</h1>{body}</body></html>
"""


def page(boards: list[Scoreboard]) -> str:
    """A page of HTML, which needs no other file."""
    title = f"Scoreboard: {boards[0].title}"
    body = "".join(board.html() for board in boards)
    return PAGE.format(title=escape(title), style=STYLE, body=body)


def _shown(measure: str, value: float) -> str:
    if UNITS.get(measure) == "ns":
        # Three digits are enough for people.
        return time_text(float(f"{value:.3g}"))
    return f"{value:.3g}"


def _listed(names: tuple[str, ...], most: int = 3) -> str:
    """The first names, and how many more there are."""
    shown, more = ", ".join(names[:most]), len(names) - most
    return f"{shown} and {more} more" if more > 0 else shown


def _cell(board: Scoreboard, cell: Cell | None) -> str:
    if cell is None:
        return "<td>-</td>"
    low, mid, high = (_shown(board.measure, cell.percentile(p)) for p in (10, 50, 90))
    place = f"{MEDALS.index(cell.medal) + 1}" if cell.medal else ""
    badge = f'<span class="medal {cell.medal}" title="{cell.medal}">{place}</span>' if place else ""
    width = "one block, no interval"
    if math.isfinite(cell.half):
        ends = cell.factor * math.exp(-cell.half), cell.factor * math.exp(cell.half)
        width = f"95 % interval {ends[0]:.3g} to {ends[1]:.3g}"
    tip = f"{cell.scheduler} under {cell.workload}: {width}, {len(cell.values)} blocks"
    if cell.rivals:
        tip += f"; not apart from {_listed(cell.rivals)}"
    strength = min(math.log(cell.factor) / math.log(10), 1) * 45
    return (
        f'<td title="{escape(tip)}" style="background: color-mix(in srgb, #d55e00 '
        f'{strength:.0f}%, transparent)">{badge}{cell.factor:.2f}'
        f"<small>{mid}</small><small>{low} to {high}</small></td>"
    )


def _table(board: Scoreboard) -> str:
    schedulers = board.schedulers()
    found = {(cell.workload, cell.scheduler): cell for cell in board.cells}
    workloads = dict.fromkeys(cell.workload for cell in board.cells)
    kind = "higher" if board.is_higher_better else "lower"
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in schedulers)
    counts = "".join(
        f"<td>{board.overall(name):.2f}<small>{'/'.join(map(str, board.medals(name)))}</small></td>"
        for name in schedulers
    )
    lines = [
        f'<tr><th scope="row">{escape(workload)}</th>'
        + "".join(_cell(board, found.get((workload, name))) for name in schedulers)
        + "</tr>"
        for workload in workloads
    ]
    without = len(workloads) - len({cell.workload for cell in board.cells if cell.medal})
    no_medal = ""
    if without:
        no_medal = (
            f"<p>{without} of {len(workloads)} workloads have no medal: each of the first three "
            "schedulers is too close to another one. Point at a cell to see which.</p>"
        )
    left_out = "".join(f"<li>{escape(text)}</li>" for text in board.left_out)
    left_out = f"<p>Without a cell:</p><ul>{left_out}</ul>" if left_out else ""
    return (
        f"<h2>{escape(board.measure)} ({kind} is better)</h2>"
        "<p>Each cell: how many times the best scheduler's geometric mean; then the median of the "
        "measure over the blocks (machine, CPUs, seed), and its 10th to 90th percentile. A medal "
        "means that the scheduler's paired interval is apart from that of every other scheduler of "
        "the row (95 % for the whole row). The first line has the geometric mean of all factors, "
        f"and the numbers of medals.</p>{no_medal}"
        f'<div class="scroll"><table class="board"><thead><tr><th scope="col">workload</th>{heads}'
        f'</tr></thead><tbody><tr><th scope="row">all workloads</th>{counts}</tr>'
        f"{''.join(lines)}</tbody></table></div>{left_out}"
    )
