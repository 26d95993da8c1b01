// SPDX-License-Identifier: MIT OR Apache-2.0
// The tables of measures: a row for each scheduler, and a table of its tasks.

/** Columns of the overview: heading, value of a run's totals, unit. */
const TOTALS = [
  ["turnaround, mean", ({ totals: t }) => t.turnaround_ns_mean, "ns"],
  ["response, mean", ({ totals: t }) => t.response_ns_mean, "ns"],
  ["run delay, mean", ({ totals: t }) => (t.nr_tasks ? t.run_delay_ns / t.nr_tasks : null), "ns"],
  ["longest wait", ({ totals: t }) => t.wait.ns_max, "ns"],
  ["makespan", ({ totals: t }) => t.makespan_ns, "ns"],
  ["switches", ({ totals: t }) => t.nr_switches, ""],
  ["CPU use", ({ totals: t }) => t.utilisation, "%"],
  ["Jain index", ({ totals: t }) => t.jain_index, ""],
];

/** Columns of a run's tasks. */
const PER_TASK = [
  ["release", (t) => t.release_ns, "ns"],
  ["first run", (t) => t.first_run_ns, "ns"],
  ["exit", (t) => t.exit_ns, "ns"],
  ["response", (t) => t.response_ns, "ns"],
  ["turnaround", (t) => t.turnaround_ns, "ns"],
  ["run delay", (t) => t.run_delay_ns, "ns"],
  ["CPU time", (t) => t.cpu_time_ns, "ns"],
  ["switches", (t) => t.nr_voluntary_switches + t.nr_involuntary_switches, ""],
  ["migrations", (t) => t.nr_migrations, ""],
];

/** Most tasks in a table; the CSV file has all of them. */
const TASKS_SHOWN = 200;

function measureText(value, unit) {
  if (value === null || value === undefined) return "\u2013";
  if (unit === "ns") return value === 0 ? "0" : duration(value);
  if (unit === "%") return (value * 100).toFixed(1) + "\u00a0%";
  return Number.isInteger(value) ? String(value) : significant(value);
}

/** A table of `items` whose rows begin with `label`. */
function measureTable(id, first, columns, items, label) {
  const head = element("tr", {});
  head.append(element("th", { scope: "col" }, element("button", { type: "button" }, first)));
  for (const [name] of columns) {
    const button = element("button", { type: "button" }, name);
    head.append(element("th", { scope: "col", class: "num" }, button));
  }
  const body = element("tbody");
  for (const item of items) {
    const row = element("tr", {}, element("th", { scope: "row" }, label(item)));
    for (const [, value, unit] of columns) {
      const found = value(item) ?? null;
      const attributes = { class: found === null ? "num none" : "num" };
      if (found !== null) attributes["data-v"] = found;
      row.append(element("td", attributes, measureText(found, unit)));
    }
    body.append(row);
  }
  const table = element("table", { id, class: "sortable" }, element("thead", {}, head), body);
  return element("div", { class: "scroll" }, table);
}

/** Fills `place` with the measures of the runs: `{title, totals, tasks}` each. */
function showMeasures(place, runs) {
  const overview = measureTable("totals", "scheduler", TOTALS, runs, (run) => run.title);
  place.replaceChildren(overview);
  runs.forEach((run, index) => {
    const shown = run.tasks.slice(0, TASKS_SHOWN);
    const table = measureTable(`tasks-${index}`, "task", PER_TASK, shown, (task) => task.name);
    const details = element("details", {}, element("summary", {}, `Tasks under ${run.title}`));
    if (run.tasks.length > shown.length) {
      const text = `The first ${shown.length} of ${run.tasks.length} tasks.`;
      details.append(element("p", { class: "notice" }, text));
    }
    details.append(table);
    details.open = runs.length === 1;
    place.append(details);
  });
  setUpTables(place);
}
