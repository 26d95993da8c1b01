// SPDX-License-Identifier: MIT OR Apache-2.0
// Line charts with uPlot: curves against n with confidence bands, and progress curves.

/** Draws a marker of `shape` centred on (x, y); hollow marks are simulated. */
function drawMarker(ctx, shape, x, y, r, colour, hollow, paper) {
  const path = new Path2D();
  const polygon = (...points) => {
    points.forEach(([dx, dy], i) => path[i ? "lineTo" : "moveTo"](x + dx * r, y + dy * r));
    path.closePath();
  };
  const strokes = (...segments) => {
    for (const [ax, ay, bx, by] of segments) {
      path.moveTo(x + ax * r, y + ay * r);
      path.lineTo(x + bx * r, y + by * r);
    }
  };
  if (shape === "circle") path.arc(x, y, r, 0, 2 * Math.PI);
  else if (shape === "square") polygon([-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]);
  else if (shape === "triangle") polygon([0, -1.2], [1.1, 0.9], [-1.1, 0.9]);
  else if (shape === "down") polygon([0, 1.2], [1.1, -0.9], [-1.1, -0.9]);
  else if (shape === "diamond") polygon([0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]);
  else if (shape === "cross") strokes([-1, -1, 1, 1], [-1, 1, 1, -1]);
  else strokes([0, -1.2, 0, 1.2], [-1.2, 0, 1.2, 0]);
  ctx.setLineDash([]);
  ctx.fillStyle = hollow ? paper : colour;
  ctx.fill(path);
  ctx.strokeStyle = colour;
  ctx.stroke(path);
}

/** Axis looks that all charts share. */
function axisStyle(colours, more) {
  return {
    stroke: colours.soft,
    font: "12px " + FONT,
    labelFont: "12px " + FONT,
    labelSize: 18,
    grid: { stroke: colours.grid, width: 1 },
    ticks: { stroke: colours.grid, width: 1, size: 4 },
    ...more,
  };
}

const MOVE_KEYS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

/** Left and right move the cursor from one x value to the next. */
function cursorKeys(place, charts) {
  place.addEventListener("keydown", (event) => {
    const by = MOVE_KEYS[event.key];
    if (event.key === "Escape")
      charts().forEach((chart) => chart.setCursor({ left: -10, top: -10 }));
    if (by === undefined || !charts().length) return;
    event.preventDefault();
    for (const chart of charts()) {
      const last = chart.data[0].length - 1;
      const idx = chart.cursor.idx;
      const at = idx === null || idx === undefined ? (by > 0 ? -1 : last + 1) : idx;
      const to = Math.min(last, Math.max(0, at + by));
      chart.setCursor({ left: chart.valToPos(chart.data[0][to], "x"), top: 10 });
    }
  });
}

/** Turnaround or throughput against n, one chart for each number of CPUs. */
class Curves {
  constructor(figure, data) {
    Object.assign(this, { figure, data, charts: [], hidden: new Set() });
    this.plot = figure.querySelector(".plot");
    this.readout = figure.querySelector(".readout");
    for (const button of figure.querySelectorAll(".legend button")) {
      button.addEventListener("click", () => this.toggle(button));
    }
    cursorKeys(this.plot, () => this.charts);
    this.redraw();
  }

  redraw() {
    this.charts.forEach((chart) => chart.destroy());
    this.plot.textContent = "";
    const colours = pageColours();
    const wide = this.plot.clientWidth;
    const columns = this.data.facets.length > 1 && wide > 760 ? 2 : 1;
    const top = Math.max(
      ...this.data.facets.flatMap((f) => f.lines.flatMap((l) => l.high.concat(l.mean))),
    );
    this.charts = this.data.facets.map((facet) => {
      const place = element("div", { class: "chart" });
      if (this.data.facets.length > 1) place.append(element("h5", {}, facet.title));
      this.plot.append(place);
      const width = Math.floor(wide / columns) - (columns > 1 ? 12 : 0);
      return this.chart(place, facet, colours, Math.min(width, 900), top);
    });
  }

  chart(place, facet, colours, width, top) {
    const series = [{}];
    const bands = [];
    const values = [facet.n];
    for (const line of facet.lines) {
      const show = !this.hidden.has(String(line.config));
      const colour = colours.lines[line.style.colour];
      const dash = line.style.dashed ? [6, 4] : undefined;
      series.push({
        stroke: colour,
        width: 2,
        dash,
        show,
        points: { show: false },
        spanGaps: true,
      });
      const edge = {
        stroke: "transparent",
        width: 0,
        show,
        points: { show: false },
        spanGaps: true,
      };
      series.push({ ...edge }, { ...edge });
      const at = series.length;
      bands.push({ series: [at - 2, at - 1], fill: withAlpha(colour, 0.16) });
      values.push(line.mean, line.high, line.low);
    }
    const narrow = width < 440;
    const n = facet.n;
    const pad = n.length > 1 ? (n[n.length - 1] - n[0]) * 0.04 : 0.5;
    const options = {
      width,
      height: narrow ? 260 : 340,
      padding: [12, narrow ? 12 : 132, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: {
        x: { time: false, range: [n[0] - pad, n[n.length - 1] + pad] },
        y: { range: [0, top * 1.06 || 1] },
      },
      axes: [
        axisStyle(colours, {
          label: "tasks n",
          size: 28,
          splits: () => nSplits(n),
          values: (u, v) => v,
          grid: { show: false },
        }),
        axisStyle(colours, { label: this.data.y_label, size: 52 }),
      ],
      series,
      bands,
      hooks: {
        drawAxes: [(u) => this.drawBend(u, facet, colours)],
        draw: [(u) => this.drawMarks(u, facet, colours, narrow)],
        setCursor: [(u) => this.say(u, facet)],
      },
    };
    return new uPlot(options, values, place);
  }

  /** The dotted upright line where n equals the number of CPUs. */
  drawBend(u, facet, colours) {
    if (facet.cpus <= facet.n[0] || facet.cpus >= facet.n[facet.n.length - 1]) return;
    const x = Math.round(u.valToPos(facet.cpus, "x", true));
    u.ctx.save();
    u.ctx.strokeStyle = colours.soft;
    u.ctx.setLineDash([2 * uPlot.pxRatio, 3 * uPlot.pxRatio]);
    u.ctx.lineWidth = uPlot.pxRatio;
    u.ctx.beginPath();
    u.ctx.moveTo(x, u.bbox.top);
    u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
    u.ctx.stroke();
    u.ctx.restore();
  }

  /** Markers at the points and, where there is room, names at the ends of the lines. */
  drawMarks(u, facet, colours, narrow) {
    const { ctx } = u;
    const px = uPlot.pxRatio;
    const ends = [];
    ctx.save();
    ctx.lineWidth = 1.5 * px;
    facet.lines.forEach((line) => {
      if (this.hidden.has(String(line.config))) return;
      const colour = colours.lines[line.style.colour];
      line.mean.forEach((value, i) => {
        if (value === null) return;
        const x = u.valToPos(facet.n[i], "x", true);
        const y = u.valToPos(value, "y", true);
        drawMarker(ctx, line.marker, x, y, 3.6 * px, colour, line.style.dashed, colours.paper);
        if (i === facet.n.length - 1) ends.push({ y, x, line, colour });
      });
    });
    if (!narrow) drawEndNames(ctx, ends, px);
    ctx.restore();
  }

  say(u, facet) {
    const i = u.cursor.idx;
    if (i === null || i === undefined || u.cursor.left < 0) return;
    const unit = (/\(([^)]*)\)/.exec(this.data.y_label) || ["", ""])[1];
    const parts = facet.lines
      .filter((line) => line.mean[i] !== null && !this.hidden.has(String(line.config)))
      .map((line) => {
        const half = line.high[i] === null ? 0 : line.high[i] - line.mean[i];
        const spread = half > 0 ? ` \u00b1 ${significant(half)}` : "";
        return `${line.label} ${line.lane} ${significant(line.mean[i])}${spread}`;
      });
    this.readout.textContent = `n = ${facet.n[i]}, ${facet.title} (${unit}): ${parts.join("; ")}.`;
  }

  toggle(button) {
    const { line } = button.dataset;
    const show = this.hidden.has(line);
    if (show) this.hidden.delete(line);
    else this.hidden.add(line);
    button.setAttribute("aria-pressed", String(show));
    this.redraw();
  }

  table() {
    return { ...this.data.table, total: this.data.table.rows.length };
  }
}

/** Whole numbers of tasks for the axis, at most about a dozen. */
function nSplits(n) {
  const step = Math.max(1, roundStep(Math.max(1, (n[n.length - 1] - n[0]) / 12)));
  const out = [];
  for (let v = Math.ceil(n[0] / step) * step; v <= n[n.length - 1]; v += step) out.push(v);
  return out;
}

/** Names right of the last points, pushed apart so that none covers another. */
function drawEndNames(ctx, ends, px) {
  ends.sort((a, b) => a.y - b.y);
  const apart = 14 * px;
  ends.forEach((end, i) => (end.at = i ? Math.max(end.y, ends[i - 1].at + apart) : end.y));
  const bottom = ends.length ? ends[ends.length - 1] : null;
  const over = bottom ? bottom.at - Math.max(bottom.y, ctx.canvas.height - 60 * px) : 0;
  if (over > 0) {
    let limit = bottom.at - over;
    for (let i = ends.length - 1; i >= 0 && ends[i].at > limit; i--) {
      ends[i].at = limit;
      limit -= apart;
    }
  }
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  for (const { x, y, at, line, colour } of ends) {
    ctx.strokeStyle = withAlpha(colour, 0.5);
    ctx.lineWidth = px;
    ctx.beginPath();
    ctx.moveTo(x + 6 * px, y);
    ctx.lineTo(x + 14 * px, at);
    ctx.stroke();
    ctx.fillStyle = colour;
    ctx.font = `${line.style.dashed ? "italic " : "600 "}${12 * px}px ${FONT}`;
    ctx.fillText(fitted(ctx, line.label, 112 * px), x + 17 * px, at);
  }
}

/** Progress curves: one small chart a run, all on the same axes, cursors linked. */
class Progress {
  constructor(figure, data, panels) {
    Object.assign(this, { figure, data, panels, charts: [] });
    this.plot = figure.querySelector(".plot");
    this.readout = figure.querySelector(".readout");
    cursorKeys(this.plot, () => this.charts.slice(0, 1));
    this.addLegend();
    this.redraw();
  }

  addLegend() {
    const most = this.panels.reduce((a, b) => (b.tasks.length > a.tasks.length ? b : a));
    const list = element("ul", { class: "legend", "aria-label": "Legend" });
    most.tasks.slice(0, 16).forEach((task, i) => {
      const dot = element("i", { class: "dot c" + (i % COLOUR_COUNT) });
      list.append(element("li", {}, element("span", {}, dot, task.name)));
    });
    const more = most.tasks.length - 16;
    if (more > 0) list.append(element("li", {}, `and ${more} more`));
    this.plot.before(list);
  }

  redraw() {
    this.charts.forEach((chart) => chart.destroy());
    this.plot.textContent = "";
    const colours = pageColours();
    const unit = unitFor(this.data.end_ns / 20);
    const wide = this.plot.clientWidth;
    const columns = Math.min(this.panels.length, wide > 900 ? 4 : 2);
    const width = Math.floor((wide - (columns - 1) * 14) / columns);
    this.plot.style.setProperty("--columns", columns);
    const sync = uPlot.sync(this.figure.id);
    this.charts = this.panels.map((panel) => {
      const title = element(
        "h5",
        {},
        panel.title,
        " ",
        element("span", { class: "lane" }, panel.lane),
      );
      const place = element("div", { class: "chart" }, title);
      this.plot.append(place);
      return this.chart(place, panel, { colours, unit, width, sync });
    });
  }

  chart(place, panel, { colours, unit, width, sync }) {
    const end = this.data.end_ns / unit[1];
    const small = width < 220;
    const tables = panel.times.map((times, i) => {
      const percent = Float64Array.from(times, (_, k) => (k * 100) / panel.tasks[i].whole);
      return [Array.from(times, (time) => time / unit[1]), Array.from(percent)];
    });
    const options = {
      width,
      height: small ? 150 : 180,
      padding: [8, 14, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        drag: { x: false, y: false },
        points: { show: false },
        sync: { key: sync.key },
      },
      scales: { x: { time: false, range: [0, end || 1] }, y: { range: [0, 100] } },
      axes: [
        axisStyle(colours, {
          label: `elapsed (${unit[0]})`,
          space: 44,
          size: 26,
          grid: { show: false },
        }),
        axisStyle(colours, {
          label: small ? undefined : "progress (%)",
          size: 34,
          splits: () => [0, 50, 100],
        }),
      ],
      series: [{}].concat(
        panel.tasks.map((_, i) => ({
          stroke: colours.lines[i % COLOUR_COUNT],
          width: 1.75,
          dash: i >= COLOUR_COUNT ? [5, 3] : undefined,
          spanGaps: true,
          points: { show: false },
        })),
      ),
      hooks: {
        setCursor: [(u) => this.say(u, panel, unit)],
        draw: [(u) => this.drawEnds(u, panel, colours, unit)],
      },
    };
    return new uPlot(options, uPlot.join(tables), place);
  }

  /** A marker where each task ended; its shape tells the tasks apart without colour. */
  drawEnds(u, panel, colours, unit) {
    const px = uPlot.pxRatio;
    const shapes = ["circle", "square", "triangle", "diamond", "down", "cross", "plus", "star"];
    u.ctx.save();
    u.ctx.lineWidth = 1.5 * px;
    panel.times.forEach((times, i) => {
      const last = times.length - 1;
      const x = u.valToPos(times[last] / unit[1], "x", true);
      const y = u.valToPos((last * 100) / panel.tasks[i].whole, "y", true);
      const colour = colours.lines[i % COLOUR_COUNT];
      drawMarker(u.ctx, shapes[i % shapes.length], x, y, 3 * px, colour, false, colours.paper);
    });
    u.ctx.restore();
  }

  say(u, panel, unit) {
    const i = u.cursor.idx;
    // Linked charts move too; only the one under the pointer or the keys speaks.
    if (i === null || i === undefined || u.cursor.left < 0 || u.cursor.event === null) return;
    const time = u.data[0][i];
    const parts = panel.tasks.slice(0, 12).map((task, k) => {
      const times = panel.times[k];
      let done = 0;
      while (done + 1 < times.length && times[done + 1] / unit[1] <= time) done++;
      return `${task.name} ${significant((done * 100) / task.whole)} %`;
    });
    const run = `${panel.title}, ${panel.lane}`;
    this.readout.textContent = `${significant(time)} ${unit[0]}, ${run}: ${parts.join("; ")}.`;
  }

  table() {
    const { panels } = this;
    function* rows() {
      for (const p of panels) {
        for (let t = 0; t < p.times.length; t++) {
          for (let k = 1; k < p.times[t].length; k++) {
            yield [
              p.title,
              p.lane,
              p.tasks[t].id,
              p.tasks[t].name,
              p.times[t][k],
              (k * 100) / p.tasks[t].whole,
            ];
          }
        }
      }
    }
    const columns = ["scheduler", "lane", "task", "name", "elapsed_ns", "progress_percent"];
    const total = panels.reduce(
      (sum, p) => sum + p.times.reduce((s, t) => s + t.length - 1, 0),
      0,
    );
    return { columns, rows: rows(), total };
  }
}

/** One run's progress: times of each task, 0 first. */
async function readProgress(data) {
  const next = await unpack(data.data);
  const times = data.tasks.map((task) => {
    const out = new Float64Array(task.count + 1);
    for (let i = 1; i <= task.count; i++) out[i] = out[i - 1] + next();
    return out;
  });
  return { ...data, data: null, times };
}
