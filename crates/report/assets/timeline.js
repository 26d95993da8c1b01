// SPDX-License-Identifier: MIT OR Apache-2.0
// The CPU timeline on a canvas. Each row keeps its slices sorted by start; a frame finds the first
// visible one by binary search, adds up what is narrower than a pixel, and draws at most one
// rectangle for each pixel column. So what is out of view costs nothing, and what is in view one
// addition a slice.

const LANE_PX = 15;
const HEAD_PX = 24;
const PANEL_GAP_PX = 12;
const AXIS_PX = 38;
const ROW_PX = 12;
const TASK_ROWS_MAX = 200;
const LABEL_FONT = "11px ";

/** Slices of one CPU or task: times, task index (colour), index into the panel's columns. */
class Row {
  constructor(label, kind, members, panel) {
    const count = members.length;
    Object.assign(this, { label, kind, panel, members });
    this.start = new Float64Array(count);
    this.end = new Float64Array(count);
    this.reach = new Float64Array(count);
    let reach = 0;
    for (let i = 0; i < count; i++) {
      this.start[i] = panel.start[members[i]];
      this.end[i] = panel.end[members[i]];
      // Ends ascend unless slices overlap, which a damaged recording can bring about.
      this.reach[i] = reach = Math.max(reach, this.end[i]);
    }
  }

  /** Index of the first slice that ends after `time`. */
  firstAfter(time) {
    let low = 0;
    let high = this.reach.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.reach[middle] > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** One run: columns decoded, rows made. */
async function readPanel(data) {
  const next = await unpack(data.data);
  const { count } = data;
  const panel = {
    ...data,
    data: null,
    start: new Float64Array(count),
    end: new Float64Array(count),
    task: new Uint32Array(count),
    cpu: new Uint16Array(count),
    how: new Uint8Array(count),
  };
  let time = 0;
  for (let i = 0; i < count; i++) panel.start[i] = time += next();
  for (let i = 0; i < count; i++) panel.end[i] = panel.start[i] + next();
  for (const column of ["task", "cpu", "how"]) {
    for (let i = 0; i < count; i++) panel[column][i] = next();
  }
  return addRows(panel);
}

/** Makes the rows of CPUs and tasks of a run whose columns are decoded. */
function addRows(panel) {
  panel.cpuRows = membersBy(panel.cpu, panel.cpus.length).map(
    (members, i) => new Row("CPU " + panel.cpus[i], "cpu", members, panel),
  );
  panel.taskRows = membersBy(panel.task, panel.tasks.length)
    .slice(0, TASK_ROWS_MAX)
    .map((members, i) =>
      Object.assign(new Row(panel.tasks[i].name, "task", members, panel), {
        task: i,
        pid: panel.tasks[i].pid,
      }),
    );
  panel.rows = panel.cpuRows.concat(panel.taskRows);
  return panel;
}

/** Indices grouped by their value in `column`. */
function membersBy(column, groups) {
  const sizes = new Uint32Array(groups);
  for (const value of column) sizes[value]++;
  const members = Array.from(sizes, (size) => new Uint32Array(size));
  sizes.fill(0);
  column.forEach((value, index) => (members[value][sizes[value]++] = index));
  return members;
}

class Timeline {
  constructor(figure, data, panels) {
    this.figure = figure;
    this.plot = figure.querySelector(".plot");
    this.readout = figure.querySelector(".readout");
    this.panels = panels;
    this.data = data;
    this.end = Math.max(1, ...panels.map((panel) => panel.end_ns));
    this.from = 0;
    this.to = this.end;
    this.rows = panels.flatMap((panel) => panel.rows);
    this.chosen = null;
    this.canvas = element("canvas");
    this.tip = element("div", { class: "tip", hidden: "" });
    this.plot.append(this.canvas, this.tip);
    this.addToolbar();
    this.layout();
    this.addPointer();
    this.plot.addEventListener("keydown", (event) => this.key(event));
    this.draw();
  }

  addToolbar() {
    const bar = element("div", {
      class: "toolbar",
      role: "group",
      "aria-label": "Zoom and move",
    });
    const add = (text, label, act) => {
      const button = element(
        "button",
        { type: "button", "aria-label": label, title: label },
        text,
      );
      button.addEventListener("click", act);
      bar.append(button);
    };
    add("\u2212", "Zoom out", () => this.zoom(2));
    add("+", "Zoom in", () => this.zoom(0.5));
    add("\u25c2", "Earlier", () => this.pan(-0.25));
    add("\u25b8", "Later", () => this.pan(0.25));
    add("All", "Show the whole run", () => this.show(0, this.end));
    this.plot.before(bar);
  }

  /** Places of panels and rows, from the width there is. */
  layout() {
    this.width = Math.max(240, this.plot.clientWidth);
    this.left = this.labelWidth() + 12;
    this.plotWidth = this.width - this.left - 10;
    let y = 4;
    for (const panel of this.panels) {
      panel.y = y;
      y += HEAD_PX;
      for (const row of panel.rows) {
        row.y = y;
        const px = row.kind === "cpu" ? LANE_PX : ROW_PX;
        row.height = px - 2;
        y += px;
        if (row === panel.cpuRows[panel.cpuRows.length - 1]) y += 4;
      }
      panel.bottom = y;
      y += PANEL_GAP_PX;
    }
    this.bottom = y - PANEL_GAP_PX + 4;
    this.height = this.bottom + AXIS_PX;
    // Phones refuse a canvas of more than 16 million pixels.
    const sharpest = Math.sqrt(16e6 / (this.width * this.height));
    this.dpr = Math.min(3, window.devicePixelRatio || 1, sharpest);
    this.canvas.width = Math.round(this.width * this.dpr);
    this.canvas.height = Math.round(this.height * this.dpr);
    this.canvas.style.height = this.height + "px";
  }

  /** Width of the widest label, at most a third of the figure. */
  labelWidth() {
    const ctx = this.canvas.getContext("2d");
    ctx.font = LABEL_FONT + FONT;
    const narrow = this.width < 560;
    let widest = narrow ? 50 : 92;
    for (const row of this.rows) {
      widest = Math.max(widest, ctx.measureText(row.label + pidOf(row)).width);
    }
    return Math.min(widest, this.width * (narrow ? 0.34 : 0.2));
  }

  /** Shows `from` to `to`, held inside the run and not below 100 ns. */
  show(from, to) {
    const span = Math.min(this.end, Math.max(100, to - from));
    this.from = Math.min(Math.max(0, from), this.end - span);
    this.to = this.from + span;
    this.later();
  }

  /** Zooms by `factor` about `time`, the middle if not given. */
  zoom(factor, time = (this.from + this.to) / 2) {
    this.show(time - (time - this.from) * factor, time + (this.to - time) * factor);
  }

  pan(part) {
    const by = (this.to - this.from) * part;
    this.show(this.from + by, this.to + by);
  }

  /** Draws in the next frame; several changes make one frame. */
  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  draw() {
    const begun = performance.now();
    const ctx = this.canvas.getContext("2d");
    const colours = pageColours();
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, this.canvas.width, this.canvas.height);
    ctx.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
    ctx.textBaseline = "middle";
    this.drawAxis(ctx, colours);
    for (const panel of this.panels) this.drawPanel(ctx, colours, panel);
    if (this.chosen) this.drawChosen(ctx, colours);
    schedlab.framesDrawn++;
    this.frameMs = performance.now() - begun;
    schedlab.frameMs.push(this.frameMs);
    if (schedlab.frameMs.length > 1000) schedlab.frameMs.shift();
  }

  drawPanel(ctx, colours, panel) {
    ctx.textAlign = "left";
    ctx.fillStyle = colours.ink;
    ctx.font = "600 13px " + FONT;
    ctx.fillText(panel.title, this.left, panel.y + 12);
    const width = ctx.measureText(panel.title).width;
    ctx.font = "13px " + FONT;
    ctx.fillStyle = colours.soft;
    ctx.fillText(panel.lane, this.left + width + 8, panel.y + 12);
    const hidden = panel.tasks.length - panel.taskRows.length;
    if (hidden > 0) {
      ctx.textAlign = "right";
      ctx.fillText(`${hidden} more tasks have no row`, this.width - 10, panel.y + 12);
    }
    ctx.textAlign = "right";
    for (const row of panel.rows) {
      ctx.font = (row.kind === "cpu" ? "600 " : "") + LABEL_FONT + FONT;
      ctx.fillStyle = row.kind === "cpu" ? colours.ink : colours.soft;
      // The name is cut where there is no room, the process id is not.
      const pid = pidOf(row);
      const name = fitted(ctx, row.label, this.left - 12 - ctx.measureText(pid).width);
      ctx.fillText(name + pid, this.left - 8, row.y + row.height / 2 + 0.5);
      if (row.kind === "task") this.drawWaiting(ctx, colours, row);
      this.drawRow(ctx, colours, row);
    }
  }

  /** The row's slices: rectangles, or columns of busy share where they are below a pixel. */
  drawRow(ctx, colours, row) {
    const { start, end, members, panel } = row;
    const { from, to, dpr } = this;
    const scale = (this.plotWidth * dpr) / (to - from);
    const left = Math.round(this.left * dpr);
    const right = left + Math.round(this.plotWidth * dpr);
    const top = Math.round(row.y * dpr);
    const height = Math.round(row.height * dpr);
    const gap = dpr >= 2 ? 2 : 1;
    const rects = colours.lines.map(() => []);
    const busy = new Float64Array(COLOUR_COUNT);
    let column = -1;
    const flush = () => {
      if (column < 0) return;
      let most = 0;
      let sum = 0;
      for (let c = 0; c < COLOUR_COUNT; c++) {
        sum += busy[c];
        if (busy[c] > busy[most]) most = c;
      }
      const share = Math.max(1, Math.round(height * Math.min(1, sum)));
      rects[most].push(left + column, top + height - share, 1, share);
      busy.fill(0);
      column = -1;
    };
    for (let i = row.firstAfter(from); i < start.length && start[i] < to; i++) {
      const a = (Math.max(start[i], from) - from) * scale;
      const b = (Math.min(end[i], to) - from) * scale;
      const colour = panel.task[members[i]] % COLOUR_COUNT;
      if (b - a < 1.5) {
        if (Math.floor(a) !== column) {
          flush();
          column = Math.floor(a);
        }
        busy[colour] += b - a;
        continue;
      }
      flush();
      const x = left + Math.round(a);
      const room = Math.min(right, left + Math.round(b)) - x;
      rects[colour].push(x, top, room > 4 * gap ? room - gap : room, height);
      if (b - a > 60 * dpr && row.kind === "cpu") this.nameLater(row, i, x / dpr, room / dpr);
    }
    flush();
    this.fill(ctx, colours, rects);
    this.drawNames(ctx, colours, row);
  }

  fill(ctx, colours, rects) {
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    rects.forEach((list, colour) => {
      if (!list.length) return;
      ctx.fillStyle = colours.lines[colour];
      for (let i = 0; i < list.length; i += 4) {
        ctx.fillRect(list[i], list[i + 1], list[i + 2], list[i + 3]);
      }
    });
    ctx.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
  }

  nameLater(row, index, x, width) {
    (this.names ||= []).push([
      row.panel.tasks[row.panel.task[row.members[index]]].name,
      x,
      width,
    ]);
  }

  /** Task names inside wide blocks of a CPU lane. */
  drawNames(ctx, colours, row) {
    if (!this.names) return;
    ctx.font = "10px " + FONT;
    ctx.fillStyle = colours.paper;
    ctx.textAlign = "left";
    for (const [name, x, width] of this.names) {
      ctx.fillText(fitted(ctx, name, width - 10), x + 5, row.y + row.height / 2 + 0.5);
    }
    ctx.textAlign = "right";
    this.names = null;
  }

  /** Thin lines where the task was runnable: before its first slice, after losing a CPU. */
  drawWaiting(ctx, colours, row) {
    const { start, end, members, panel } = row;
    const { from, to } = this;
    const scale = this.plotWidth / (to - from);
    const thick = Math.max(1, Math.min(2, row.height / 6));
    const y = row.y + row.height / 2 - thick / 2;
    ctx.fillStyle = colours.wait;
    const line = (a, b) => {
      const x = this.left + (Math.max(a, from) - from) * scale;
      const width = this.left + (Math.min(b, to) - from) * scale - x;
      if (width >= 0.75) ctx.fillRect(x, y, width, thick);
    };
    const first = row.firstAfter(from);
    if (first === 0 && start.length) line(panel.tasks[row.task].release_ns, start[0]);
    for (let i = Math.max(1, first); i < start.length && end[i - 1] < to; i++) {
      const how = panel.ends[panel.how[members[i - 1]]];
      if (how === "preempted" || how === "yielded") line(end[i - 1], start[i]);
    }
    const last = start.length - 1;
    const how = last >= 0 && panel.ends[panel.how[members[last]]];
    if (how === "preempted" || how === "yielded") line(end[last], panel.end_ns);
  }

  drawAxis(ctx, colours) {
    const span = this.to - this.from;
    const step = roundStep(span / Math.max(3, this.plotWidth / 110));
    const unit = unitFor(Math.max(step, this.to / 1000));
    const digits = Math.max(0, Math.ceil(-Math.log10(step / unit[1]) - 1e-9));
    ctx.font = "11px " + FONT;
    ctx.textAlign = "center";
    for (
      let time = Math.ceil(this.from / step) * step;
      time <= this.to + step / 1e6;
      time += step
    ) {
      const x = Math.round(this.left + ((time - this.from) / span) * this.plotWidth) + 0.5;
      ctx.fillStyle = colours.grid;
      ctx.fillRect(x - 0.5, 0, 1, this.bottom);
      ctx.fillStyle = colours.soft;
      const label = (time / unit[1]).toFixed(Math.min(6, digits));
      // The label of the last line stays whole.
      const middle = Math.min(x, this.width - ctx.measureText(label).width / 2 - 1);
      ctx.fillText(label, middle, this.bottom + 10);
    }
    ctx.fillStyle = colours.soft;
    ctx.fillRect(this.left, this.bottom, this.plotWidth, 1);
    ctx.fillText(
      `time since the first release (${unit[0]})`,
      this.left + this.plotWidth / 2,
      this.bottom + 27,
    );
  }

  drawChosen(ctx, colours) {
    const { row, index } = this.chosen;
    const scale = this.plotWidth / (this.to - this.from);
    const a = this.left + (row.start[index] - this.from) * scale;
    const b = this.left + (row.end[index] - this.from) * scale;
    if (b < this.left || a > this.left + this.plotWidth) return;
    const x = Math.max(a, this.left);
    ctx.strokeStyle = colours.ink;
    ctx.lineWidth = 2;
    const width = Math.max(2, Math.min(b, this.left + this.plotWidth) - x);
    ctx.strokeRect(x - 1, row.y - 1, width + 2, row.height + 2);
  }

  timeAt(x) {
    return this.from + ((x - this.left) / this.plotWidth) * (this.to - this.from);
  }

  /** The slice at a place, or the nearest within three pixels. */
  sliceAt(x, y) {
    const row = this.rows.find((r) => y >= r.y - 1 && y <= r.y + r.height + 1);
    if (!row || !row.start.length || x < this.left) return null;
    const time = this.timeAt(x);
    const near = ((this.to - this.from) / this.plotWidth) * 3;
    const index = Math.min(row.firstAfter(time), row.start.length - 1);
    if (row.start[index] <= time + near && row.end[index] >= time - near) return { row, index };
    if (index > 0 && row.end[index - 1] >= time - near) return { row, index: index - 1 };
    return null;
  }

  describe({ row, index }) {
    const { panel } = row;
    const slice = row.members[index];
    const task = panel.tasks[panel.task[slice]];
    const [from, to] = [panel.start[slice], panel.end[slice]];
    const unit = unitFor(Math.max(to, 1));
    const digits = Math.max(
      0,
      Math.min(6, Math.ceil(Math.log10((unit[1] / Math.max(1, to - from)) * 1000))),
    );
    const at = (time) => (time / unit[1]).toFixed(digits);
    return (
      `${task.name} (${task.pid ? "process id " + task.pid : "task " + task.id}) ` +
      `on CPU ${panel.cpus[panel.cpu[slice]]}: ` +
      `${at(from)} to ${at(to)}\u00a0${unit[0]}, ${duration(to - from)}, ` +
      `then ${panel.ends[panel.how[slice]]}. ${panel.title}, ${panel.lane}.`
    );
  }

  choose(found, x, y) {
    const changed =
      (found && found.row) !== (this.chosen && this.chosen.row) ||
      (found && found.index) !== (this.chosen && this.chosen.index);
    this.chosen = found;
    this.tip.hidden = !found;
    if (found) {
      if (changed) this.tip.textContent = this.describe(found);
      const width = Math.min(280, this.width - 20);
      this.tip.style.maxWidth = width + "px";
      this.tip.style.left = Math.max(4, Math.min(x + 14, this.width - width - 8)) + "px";
      this.tip.style.top = y + 18 + "px";
    }
    if (changed) this.later();
  }

  addPointer() {
    const canvas = this.canvas;
    const fingers = new Map();
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    let moved = 0;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, place(event));
      moved = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const now = place(event);
      const before = fingers.get(event.pointerId);
      if (!before) {
        this.choose(this.sliceAt(...now), ...now);
        return;
      }
      const others = [...fingers].filter(([id]) => id !== event.pointerId);
      moved += Math.abs(now[0] - before[0]);
      if (others.length) this.pinch(before[0], now[0], others[0][1][0]);
      else this.pan((before[0] - now[0]) / this.plotWidth);
      fingers.set(event.pointerId, now);
    });
    const up = (event) => {
      const tapped = fingers.delete(event.pointerId) && moved < 5 && event.type === "pointerup";
      if (tapped) {
        const found = this.sliceAt(...place(event));
        this.choose(found, ...place(event));
        this.readout.textContent = found ? this.describe(found) : "";
      }
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    // A finger leaves as soon as it is lifted; what it tapped stays shown.
    canvas.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") this.choose(null);
    });
    canvas.addEventListener("dblclick", (event) => this.zoom(0.4, this.timeAt(place(event)[0])));
    canvas.addEventListener("wheel", (event) => this.wheel(event, place(event)), {
      passive: false,
    });
  }

  /** Two fingers: what was under each stays under it. */
  pinch(before, now, other) {
    const [a, b] = [this.timeAt(before), this.timeAt(other)];
    const apart = now - other;
    if (Math.abs(apart) < 8 || Math.abs(before - other) < 8) return;
    const perPixel = (a - b) / apart;
    const from = b - (other - this.left) * perPixel;
    this.show(from, from + perPixel * this.plotWidth);
  }

  wheel(event, [x]) {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const mine = event.ctrlKey || event.metaKey || document.activeElement === this.plot;
    if (!sideways && !mine) return;
    event.preventDefault();
    if (sideways) this.pan(event.deltaX / this.plotWidth);
    else this.zoom(Math.exp(Math.max(-200, Math.min(200, event.deltaY)) / 300), this.timeAt(x));
  }

  key(event) {
    const acts = {
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      0: () => this.show(0, this.end),
      Home: () => this.show(0, this.to - this.from),
      End: () => this.show(this.end, this.end + this.to - this.from),
      ArrowLeft: () => this.pan(-0.2),
      ArrowRight: () => this.pan(0.2),
      ArrowDown: () => this.step(1, 0),
      ArrowUp: () => this.step(-1, 0),
      n: () => this.step(0, 1),
      p: () => this.step(0, -1),
      Escape: () => this.choose(null),
    };
    if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    acts[event.key]();
  }

  /** Chooses another row or another slice of the row, shows and says it. */
  step(rows, slices) {
    const filled = this.rows.filter((row) => row.start.length);
    if (!filled.length) return;
    const old = this.chosen;
    const at = old ? filled.indexOf(old.row) : rows >= 0 ? 0 : filled.length - 1;
    const row = old ? filled[Math.min(filled.length - 1, Math.max(0, at + rows))] : filled[at];
    const time = old ? old.row.start[old.index] : this.from;
    let index = old && row === old.row ? old.index + slices : row.firstAfter(time);
    index = Math.min(row.start.length - 1, Math.max(0, index));
    const found = { row, index };
    const [from, to] = [row.start[index], row.end[index]];
    if (from < this.from || to > this.to) {
      const half = (this.to - this.from) / 2;
      this.show((from + to) / 2 - half, (from + to) / 2 + half);
    }
    const x = this.left + ((from - this.from) / (this.to - this.from)) * this.plotWidth;
    this.choose(found, Math.max(this.left, x), row.y);
    this.readout.textContent = this.describe(found);
  }

  /** Rows of the data table and the CSV file. */
  table() {
    const panels = this.panels;
    function* rows() {
      for (const p of panels) {
        for (let i = 0; i < p.start.length; i++) {
          const task = p.tasks[p.task[i]];
          yield [
            p.title,
            p.lane,
            p.cpus[p.cpu[i]],
            task.id,
            task.name,
            p.start[i],
            p.end[i],
            p.ends[p.how[i]],
          ];
        }
      }
    }
    const columns = ["scheduler", "lane", "cpu", "task", "name", "start_ns", "end_ns", "end"];
    return { columns, rows: rows(), total: panels.reduce((sum, p) => sum + p.start.length, 0) };
  }

  redraw() {
    this.layout();
    this.draw();
  }
}

const FONT = 'system-ui, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif';

/** What a row's label has behind the name. */
function pidOf(row) {
  return row.pid ? " " + row.pid : "";
}

/** `text`, cut with an ellipsis to fit `width`. */
function fitted(ctx, text, width) {
  if (ctx.measureText(text).width <= width) return text;
  let length = Math.min(text.length, 64);
  while (length > 1 && ctx.measureText(text.slice(0, length) + "\u2026").width > width) length--;
  return text.slice(0, length) + "\u2026";
}

/** The next 1, 2 or 5 times a power of ten at or above `least`. */
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].find((factor) => factor * power >= least) * power;
}
