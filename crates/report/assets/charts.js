// SPDX-License-Identifier: MIT OR Apache-2.0
// What a drawn chart cannot do by itself: legends hide series, and the pointer or the keys read
// values. The pictures are in the page already.

/** A legend's buttons hide and show their series in the picture that follows the legend. */
function setUpLegends(root) {
  for (const button of root.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => {
      const show = button.getAttribute("aria-pressed") === "false";
      button.setAttribute("aria-pressed", String(show));
      const picture = button.closest(".legend").nextElementSibling;
      for (const group of picture.querySelectorAll(`g[data-line="${button.dataset.line}"]`)) {
        group.toggleAttribute("hidden", !show);
      }
    });
  }
}

const MOVE_KEYS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

/**
 * A cursor over the panels of a chart. `panels` have the places `x` where it stops, in the unit of
 * the axis, and `say`, which tells the values at one of them. With `linked` it is in all panels.
 */
class Chart {
  constructor(figure, data, panels, linked) {
    Object.assign(this, { figure, data, panels, linked, at: null });
    this.plot = figure.querySelector(".plot");
    this.readout = figure.querySelector(".readout");
    this.charts = [...this.plot.querySelectorAll("svg[data-x]")].map((svg) => {
      const [low, high, left, right] = svg.dataset.x.split(" ").map(Number);
      const panel = panels[svg.dataset.panel];
      const chart = { svg, panel, low, high, left, right };
      svg.addEventListener("pointermove", (event) => this.point(chart, event));
      svg.addEventListener("pointerleave", () => this.show([]));
      return chart;
    });
    this.plot.addEventListener("keydown", (event) => this.key(event));
  }

  point(chart, event) {
    const box = chart.svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * chart.svg.viewBox.baseVal.width;
    const part = (x - chart.left) / (chart.right - chart.left);
    if (part < -0.02 || part > 1.02) return;
    const value = chart.low + part * (chart.high - chart.low);
    const far = chart.panel.x.map((known) => Math.abs(known - value));
    this.move(far.indexOf(Math.min(...far)), this.linked ? this.charts : [chart], chart.panel);
  }

  key(event) {
    if (event.key === "Escape") this.show([]);
    const by = MOVE_KEYS[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const last = Math.max(...this.panels.map((panel) => panel.x.length)) - 1;
    const at = this.at ?? (by > 0 ? -1 : last + 1);
    this.move(Math.min(last, Math.max(0, at + by)), this.charts, this.panels[0]);
  }

  /** Puts the cursor of `charts` at the place with number `at` and says what `panel` has there. */
  move(at, charts, panel) {
    this.at = at;
    this.show(charts);
    this.readout.textContent = panel.say(Math.min(at, panel.x.length - 1));
  }

  /** Shows the cursor in `charts` only. */
  show(charts) {
    this.plot.querySelectorAll(".cursor").forEach((line) => line.remove());
    for (const { svg, panel, low, high, left, right } of charts) {
      const value = panel.x[Math.min(this.at, panel.x.length - 1)];
      const x = left + ((value - low) / (high - low)) * (right - left);
      const line = document.createElementNS(svg.namespaceURI, "path");
      line.setAttribute("class", "axis cursor");
      line.setAttribute("d", `M${x} 0V${svg.viewBox.baseVal.height}`);
      svg.append(line);
    }
  }

  redraw() {}
}

/** Turnaround or throughput against n, a panel for each number of CPUs. */
function curves(figure, data) {
  const unit = (/\(([^)]*)\)/.exec(data.y_label) || ["", ""])[1];
  const panels = data.facets.map((facet) => ({
    x: facet.n,
    say: (i) => {
      const parts = facet.lines
        .filter((line) => line.mean[i] !== null)
        .map((line) => {
          const half = line.high[i] === null ? 0 : line.high[i] - line.mean[i];
          const spread = half > 0 ? ` \u00b1 ${significant(half)}` : "";
          return `${line.label} ${line.lane} ${significant(line.mean[i])}${spread}`;
        });
      return `n = ${facet.n[i]}, ${facet.title} (${unit}): ${parts.join("; ")}.`;
    },
  }));
  const made = new Chart(figure, data, panels, false);
  made.table = () => ({ ...data.table, total: data.table.rows.length });
  return made;
}

/** Steps of the cursor over the time of a run. */
const PROGRESS_STEPS = 200;

/** Progress of tasks, a panel for each run. */
function progress(figure, data, runs) {
  const unit = unitFor(data.end_ns / 20);
  const step = data.end_ns / PROGRESS_STEPS;
  const panels = runs.map((run) => ({
    x: Array.from({ length: PROGRESS_STEPS + 1 }, (_, i) => (i * step) / unit[1]),
    say: (i) => {
      const parts = run.tasks.slice(0, 12).map((task, k) => {
        const done = run.times[k].findLastIndex((time) => time <= i * step);
        return `${task.name} ${significant((done * 100) / task.whole)} %`;
      });
      const time = significant((i * step) / unit[1]);
      return `${time} ${unit[0]}, ${run.title}, ${run.lane}: ${parts.join("; ")}.`;
    },
  }));
  const made = new Chart(figure, data, panels, true);
  made.table = () => progressTable(runs);
  return made;
}

function progressTable(runs) {
  function* rows() {
    for (const run of runs) {
      for (let t = 0; t < run.times.length; t++) {
        const { id, name, whole } = run.tasks[t];
        for (let k = 1; k < run.times[t].length; k++) {
          yield [run.title, run.lane, id, name, run.times[t][k], (k * 100) / whole];
        }
      }
    }
  }
  const columns = ["scheduler", "lane", "task", "name", "elapsed_ns", "progress_percent"];
  const total = runs.reduce((sum, run) => sum + run.times.reduce((s, t) => s + t.length - 1, 0), 0);
  return { columns, rows: rows(), total };
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
