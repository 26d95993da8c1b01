# SPDX-License-Identifier: MIT OR Apache-2.0
"""The display of results in notebooks: a table of measures, and the timeline as SVG."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .result import Result

# Okabe and Ito's palette, which people with any colour vision can tell apart.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#555555")
ROW = 22
LEFT = 60
SLICES_MAX = 4000
"""Most slices that are drawn one by one; of longer runs the first ones are shown."""

SHOWN = (
    "makespan_ns",
    "turnaround_ns_mean",
    "response_ns_mean",
    "run_delay_ns_mean",
    "nr_switches",
    "jain_index",
)


def time_text(ns: float) -> str:
    """A time with its unit, for people."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= size:
            return f"{ns / size:g} {unit}"
    return f"{ns:g} ns"


def svg(result: Result, width: int) -> str:
    """The timeline of the CPUs: one row a CPU, one colour a task."""
    table = result.slices
    if len(table) == 0:
        raise ValueError('the result holds no slices: simulate with keep="slices"')
    names = ("cpu", "task", "start_ns", "end_ns", "end")
    rows = list(zip(*(table.column(name) for name in names), strict=True))
    shown = rows[:SLICES_MAX]
    end = max(row[3] for row in shown) if len(shown) < len(rows) else result.end_ns
    cpus = int(result.data["machine"]["nr_cpus"])
    scale = (width - LEFT - 10) / max(end, 1)
    height = cpus * ROW + 40
    title = f"{result.workload} under {result.scheduler}: {len(shown)} slices on {cpus} CPUs"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-family="sans-serif" font-size="11">'
        f"<title>{escape(title)}</title>"
    ]
    for cpu in range(cpus):
        parts.append(f'<text x="4" y="{cpu * ROW + 15}" fill="currentColor">CPU {cpu}</text>')
    for cpu, task, start, stop, why in shown:
        name = result.names[task]
        tip = f"{name}: {time_text(start)} to {time_text(stop)}, {why}"
        x, wide = LEFT + start * scale, max((stop - start) * scale, 0.5)
        parts.append(
            f'<rect x="{x:.2f}" y="{cpu * ROW + 2}" width="{wide:.2f}" height="{ROW - 5}" '
            f'fill="{COLOURS[task % len(COLOURS)]}"><title>{escape(tip)}</title></rect>'
        )
    base = cpus * ROW + 6
    for number in range(6):
        at = end * number / 5
        anchor = "end" if number == 5 else "middle" if number else "start"
        parts.append(
            f'<text x="{LEFT + at * scale:.1f}" y="{base + 16}" text-anchor="{anchor}" '
            f'fill="currentColor">{time_text(round(at))}</text>'
        )
    return "".join(parts) + "</svg>"


def html(result: Result) -> str:
    """The display of a result in a notebook."""
    totals = result.totals
    flat = {name: value for name, value in totals.items() if isinstance(value, int | float)}
    for name, value in totals.items():
        if isinstance(value, dict):
            flat.update({f"{name}_{part}": number for part, number in value.items()})
    rows = []
    for name in SHOWN:
        value = flat.get(name)
        if value is not None:
            shown = time_text(value) if "_ns" in name else f"{value:g}"
            rows.append(f"<tr><td>{escape(name)}</td><td>{escape(shown)}</td></tr>")
    parts = [f"<b>{escape(result.workload)} under {escape(result.scheduler)}</b>"]
    parts.append(f"<table>{''.join(rows)}</table>")
    if len(result.slices):
        parts.append(svg(result, 900))
    parts.extend(f"<p>Warning: {escape(warning.text)}</p>" for warning in result.warnings)
    return "<div>" + "".join(parts) + "</div>"
