# SPDX-License-Identifier: MIT OR Apache-2.0
"""The report's timeline as a widget in notebooks: zoom, move, hover, keyboard."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise ImportError(
        "the widget needs anywidget: install it with pip install './python[notebook]'"
    ) from error

from . import _core

if TYPE_CHECKING:
    from .result import Result

# The colours and boxes of the report's page, which a notebook does not have.
STYLE = """
:root { --paper: #fffdf8; --ink: #1b1a17; --soft: #6a665e; --grid: #e8e4da; --rule: #cfc9bb;
  --wait: #a9a395; --wash: #f6f2e8; --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #cc79a7;
  --c4: #56b4e9; --c5: #e69f00; --c6: #666666; --c7: #b8a800; }
.schedlab-timeline { background: var(--paper); color: var(--ink); margin: 0; padding: 8px; }
.schedlab-timeline .plot { position: relative; min-height: 3rem; }
.schedlab-timeline canvas { display: block; width: 100%; touch-action: pan-y; cursor: grab; }
.schedlab-timeline .toolbar { display: flex; justify-content: flex-end; gap: 4px; }
.schedlab-timeline button { font: 13px system-ui, sans-serif; color: var(--ink); background: none;
  border: 1px solid var(--rule); border-radius: 4px; min-width: 34px; height: 30px; }
.schedlab-timeline .tip { position: absolute; z-index: 3; pointer-events: none;
  background: var(--ink); color: var(--paper); font: 12px/1.4 system-ui, sans-serif;
  padding: 4px 8px; border-radius: 3px; }
.schedlab-timeline .tip[hidden] { display: none; }
.schedlab-timeline .readout { font: 13px/1.45 system-ui, sans-serif; min-height: 1.4em; }
"""

# Columns arrive as bytes; the timeline is drawn when the cell has a width.
GLUE = """
export default {
  render({ model, el }) {
    const column = (name, Kind) => {
      const { buffer, byteOffset, byteLength } = model.get(name);
      return new Kind(buffer.slice(byteOffset, byteOffset + byteLength));
    };
    const panel = addRows({
      ...model.get("panel"),
      start: column("start", Float64Array),
      end: column("end", Float64Array),
      task: column("task", Uint32Array),
      cpu: column("cpu", Uint16Array),
      how: column("how", Uint8Array),
    });
    const plot = element("div", { class: "plot", tabindex: "0", "aria-label": "Timeline" });
    const readout = element("p", { class: "readout", "aria-live": "polite" });
    const figure = element("figure", { class: "schedlab-timeline" }, plot, readout);
    el.append(figure);
    let timeline = null;
    const observer = new ResizeObserver(() => {
      if (!plot.clientWidth) return;
      if (!timeline) timeline = new Timeline(figure, {}, [panel]);
      else if (plot.clientWidth !== timeline.width) timeline.redraw();
    });
    observer.observe(plot);
    return () => observer.disconnect();
  },
};
"""


class Timeline(anywidget.AnyWidget):
    """The timeline of a result that keeps its slices."""

    _esm = _core.timeline_script() + GLUE
    _css = STYLE

    panel: Any = traitlets.Dict().tag(sync=True)
    start: Any = traitlets.Bytes().tag(sync=True)
    end: Any = traitlets.Bytes().tag(sync=True)
    task: Any = traitlets.Bytes().tag(sync=True)
    cpu: Any = traitlets.Bytes().tag(sync=True)
    how: Any = traitlets.Bytes().tag(sync=True)

    def __init__(self, result: Result) -> None:
        table = result.slices
        if len(table) == 0:
            raise ValueError('the result holds no slices: simulate with keep="slices"')
        ends = _core.END_NAMES
        released = {task["id"]: task["release_ns"] for task in result.tasks}
        tasks = [
            {"id": number, "name": name, "release_ns": released.get(number, 0)}
            for number, name in enumerate(result.names)
        ]
        how = [ends.index(name) for name in table.column("end")]
        super().__init__(
            panel={
                "title": result.scheduler,
                "lane": "simulated",
                "cpus": list(range(result.data["machine"]["nr_cpus"])),
                "tasks": tasks,
                "ends": ends,
                "end_ns": result.end_ns,
                "count": len(table),
            },
            start=array("d", table.column("start_ns")).tobytes(),
            end=array("d", table.column("end_ns")).tobytes(),
            task=array("I", table.column("task")).tobytes(),
            cpu=array("H", table.column("cpu")).tobytes(),
            how=bytes(how),
        )
