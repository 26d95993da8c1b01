// SPDX-License-Identifier: MIT OR Apache-2.0
// What the playground draws beyond the report: the timeline's pictures for slides, and the number
// of waiting tasks over time under it, on the same axis.

const QUEUE_PX = 120;
const QUEUE_HEAD_PX = 8;
const QUEUE_AXIS_PX = 24;
const PICTURE_PX = 1280;

/** The part of a canvas context that the timeline uses, kept as SVG. */
class SvgContext {
  constructor() {
    this.parts = [];
    this.textAlign = "left";
    this.fillStyle = this.strokeStyle = "#000";
    this.lineWidth = 1;
    this.ruler = element("canvas").getContext("2d");
    this.font = "11px " + FONT;
  }

  set font(value) {
    this.ruler.font = value;
    this.own = value;
  }

  get font() {
    return this.own;
  }

  measureText(text) {
    return this.ruler.measureText(text);
  }

  setTransform() {}

  clearRect() {}

  rect(x, y, width, height, paint) {
    const at = [x, y, width, height].map((value) => Math.round(value * 100) / 100);
    this.parts.push(
      `<rect x="${at[0]}" y="${at[1]}" width="${at[2]}" height="${at[3]}" ${paint}/>`,
    );
  }

  fillRect(x, y, width, height) {
    this.rect(x, y, width, height, `fill="${this.fillStyle}"`);
  }

  strokeRect(x, y, width, height) {
    const paint = `fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"`;
    this.rect(x, y, width, height, paint);
  }

  fillText(content, x, y) {
    const [, bold, size] = /^(600 )?(\d+)px/.exec(this.font) || [null, "", "11"];
    const anchor = { left: "start", right: "end", center: "middle" }[this.textAlign];
    this.parts.push(
      `<text x="${Math.round(x * 100) / 100}" y="${Math.round(y * 100) / 100}" ` +
        `fill="${this.fillStyle}" font-size="${size}"${bold ? ' font-weight="600"' : ""} ` +
        `text-anchor="${anchor}" dominant-baseline="central">${escaped(content)}</text>`,
    );
  }
}

function escaped(content) {
  const signs = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return String(content).replace(/[&<>"]/g, (sign) => signs[sign]);
}

/** The report's timeline, with decisions to ask about and pictures to take away. */
class PlayTimeline extends Timeline {
  constructor(figure, panels, events) {
    super(figure, {}, panels);
    this.events = events;
  }

  show(from, to) {
    super.show(from, to);
    if (this.events) this.events.shown();
  }

  step(rows, slices) {
    super.step(rows, slices);
    this.asked();
  }

  choose(found, x, y) {
    super.choose(found, x, y);
    if (found) this.last = found;
  }

  addPointer() {
    super.addPointer();
    // A click or a tap asks why; a drag does not.
    let start = null;
    this.canvas.addEventListener("pointerdown", (event) => (start = event.clientX));
    this.canvas.addEventListener("pointerup", (event) => {
      if (start !== null && Math.abs(event.clientX - start) < 5) this.asked();
      start = null;
    });
  }

  /** The chosen block is the one to explain. */
  asked() {
    if (this.chosen && this.events) this.events.asked(this.chosen);
  }

  /** Other runs in the same place, the view kept if they end at the same time. */
  replace(panels) {
    const end = Math.max(1, ...panels.map((panel) => panel.end_ns));
    const same = end === this.end;
    Object.assign(this, { panels, end, chosen: null, last: null });
    this.tip.hidden = true;
    this.rows = panels.flatMap((panel) => panel.rows);
    if (!same) Object.assign(this, { from: 0, to: end });
    this.redraw();
  }

  /** Draws once on another canvas, of this width and sharpness. */
  drawOn(canvas, width, dpr) {
    const { canvas: own, chosen } = this;
    const plot = this.plot;
    this.canvas = canvas;
    this.chosen = null;
    this.plot = { clientWidth: width };
    try {
      this.layout();
      this.dpr = dpr;
      canvas.width = Math.round(this.width * dpr);
      canvas.height = Math.round(this.height * dpr);
      this.draw();
      return [this.width, this.height];
    } finally {
      Object.assign(this, { canvas: own, chosen, plot });
      this.redraw();
    }
  }

  svg() {
    const context = new SvgContext();
    const canvas = { getContext: () => context, style: {} };
    const [width, height] = this.drawOn(canvas, PICTURE_PX, 1);
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" ` +
      `width="${width}" height="${height}" font-family='${FONT}'>\n` +
      `<rect width="100%" height="100%" fill="${cssColour("--paper")}"/>\n` +
      context.parts.join("\n") +
      "\n</svg>\n"
    );
  }

  /** The picture as PNG, at double sharpness. */
  async png() {
    const drawn = element("canvas");
    this.drawOn(drawn, PICTURE_PX, 2);
    const whole = element("canvas", { width: drawn.width, height: drawn.height });
    const context = whole.getContext("2d");
    context.fillStyle = cssColour("--paper");
    context.fillRect(0, 0, whole.width, whole.height);
    context.drawImage(drawn, 0, 0);
    return new Promise((done) => whole.toBlob(done, "image/png"));
  }
}

/** A panel of the timeline from the columns of a run. */
function panelOf(title, outcome, columns, endNames) {
  const { measures, machine } = outcome.result;
  return addRows({
    title,
    lane: "simulated",
    cpus: Array.from({ length: machine.nr_cpus }, (_, cpu) => cpu),
    tasks: measures.tasks.map(({ id, name, release_ns }) => ({ id, name, release_ns })),
    ends: endNames,
    count: columns.start.length,
    end_ns: measures.totals.end_ns,
    start: columns.start,
    end: columns.end,
    task: columns.task,
    cpu: columns.cpu,
    how: columns.how,
  });
}

/** Steps of the number of waiting tasks, from the waits of all tasks. */
function queueOf(starts, ends) {
  const from = Float64Array.from(starts).sort();
  const to = Float64Array.from(ends).sort();
  const times = [0];
  const counts = [0];
  let [i, j] = [0, 0];
  while (i < from.length || j < to.length) {
    const time = Math.min(from[i] ?? Infinity, to[j] ?? Infinity);
    while (from[i] === time) i++;
    while (to[j] === time) j++;
    if (times[times.length - 1] === time) counts[counts.length - 1] = i - j;
    else {
      times.push(time);
      counts.push(i - j);
    }
  }
  return { times, counts, most: counts.reduce((a, b) => Math.max(a, b), 0) };
}

/** The number of waiting tasks over time, a line for each run. */
class QueueChart {
  constructor(plot, readout, timeline) {
    Object.assign(this, { plot, readout, timeline, lines: [] });
    this.canvas = element("canvas");
    plot.append(this.canvas);
    this.canvas.addEventListener("pointermove", (event) => {
      const box = this.canvas.getBoundingClientRect();
      this.read(timeline.timeAt(event.clientX - box.left));
    });
    plot.addEventListener("keydown", (event) => this.key(event));
  }

  replace(lines) {
    this.lines = lines;
    this.at = null;
    this.draw();
  }

  key(event) {
    const sign = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!sign || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const { from, to } = this.timeline;
    const at = this.at ?? from;
    this.read(Math.min(to, Math.max(from, at + (sign * (to - from)) / 50)));
  }

  read(time) {
    const { from, to } = this.timeline;
    if (time < from || time > to) return;
    this.at = time;
    const found = this.lines.map(({ title, queue }) => `${title}: ${valueAt(queue, time)}`);
    this.readout.textContent = `At ${duration(time)}, tasks waiting: ${found.join(", ")}.`;
    this.draw();
  }

  draw() {
    const { left, plotWidth, width, dpr, from, to } = this.timeline;
    this.canvas.width = Math.round(width * dpr);
    this.canvas.height = Math.round(QUEUE_PX * dpr);
    this.canvas.style.width = "100%";
    this.canvas.style.height = QUEUE_PX + "px";
    const ctx = this.canvas.getContext("2d");
    const colours = pageColours();
    ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
    ctx.clearRect(0, 0, width, QUEUE_PX);
    const bottom = QUEUE_PX - QUEUE_AXIS_PX;
    const most = Math.max(1, ...this.lines.map(({ queue }) => queue.most));
    const x = (time) => left + ((time - from) / (to - from)) * plotWidth;
    const y = (count) => bottom - (count / most) * (bottom - QUEUE_HEAD_PX);
    this.axis(ctx, colours, { left, plotWidth, bottom, most, y });
    this.lines.forEach(({ queue }, index) => {
      ctx.strokeStyle = colours.lines[index % COLOUR_COUNT];
      ctx.lineWidth = 1.6;
      ctx.setLineDash([[], [6, 3], [2, 3], [8, 3, 2, 3]][index % 4]);
      ctx.beginPath();
      // Lines that share a value stay visible next to each other.
      const shift = (index - (this.lines.length - 1) / 2) * 1.5;
      ctx.moveTo(x(from), y(valueAt(queue, from)) + shift);
      let at = -Infinity;
      for (let i = firstAbove(queue.times, from); i < queue.times.length; i++) {
        if (queue.times[i] > to) break;
        const place = x(queue.times[i]);
        const isLast = i + 1 === queue.times.length || queue.times[i + 1] > to;
        // More than two steps a pixel cannot be seen.
        if (place - at < 0.5 && !isLast) continue;
        ctx.lineTo(place, y(valueAt(queue, queue.times[i] - 1)) + shift);
        ctx.lineTo(place, y(queue.counts[i]) + shift);
        at = place;
      }
      ctx.lineTo(x(to), y(valueAt(queue, to)) + shift);
      ctx.stroke();
    });
    ctx.setLineDash([]);
    if (this.at !== null && this.at >= from && this.at <= to) {
      ctx.fillStyle = colours.ink;
      ctx.fillRect(x(this.at), QUEUE_HEAD_PX, 1, bottom - QUEUE_HEAD_PX);
    }
  }

  axis(ctx, colours, { left, plotWidth, bottom, most, y }) {
    ctx.font = "11px " + FONT;
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    const step = Math.max(1, roundStep(most / 4));
    for (let count = 0; count <= most; count += step) {
      ctx.fillStyle = colours.grid;
      ctx.fillRect(left, Math.round(y(count)), plotWidth, 1);
      ctx.fillStyle = colours.soft;
      ctx.fillText(String(count), left - 8, y(count));
    }
    ctx.fillStyle = colours.soft;
    ctx.fillRect(left, bottom, plotWidth, 1);
    ctx.textAlign = "center";
    ctx.fillText("tasks waiting for a CPU", left + plotWidth / 2, bottom + 14);
  }
}

/** Index of the first number above `value` in an ascending list. */
function firstAbove(list, value) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

function valueAt(queue, time) {
  return queue.counts[Math.max(0, firstAbove(queue.times, time) - 1)];
}
