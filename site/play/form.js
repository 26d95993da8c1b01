// SPDX-License-Identifier: MIT OR Apache-2.0
// The form of the playground: jobs, machine, schedulers. It shows a state and changes it.

/** Tunables that a reader wants to see first. */
const FIRST_SETTINGS = ["quantum", "slice", "base_slice", "timeslice", "rr_interval"];

const COLUMNS = [
  ["name", "Name", "text", 7],
  ["release", "Released (ms)", "decimal", 5],
  ["run", "Runs (ms)", "decimal", 5],
  ["sleep", "Sleeps (ms)", "decimal", 5],
  ["rounds", "Rounds", "numeric", 4],
  ["policy", "Policy", "select", 0],
  ["priority", "Nice or priority", "text", 4],
];

class Form {
  /** `changed` is called after every change of `state`. */
  constructor(root, state, lists, changed) {
    Object.assign(this, { root, state, lists, changed });
    this.byName = new Map(lists.schedulers.map((one) => [one.name, one]));
    this.find = (id) => root.querySelector("#" + id);
    this.listen();
    this.show();
  }

  /** Shows the whole state. */
  show() {
    const { state } = this;
    for (const radio of this.root.querySelectorAll("[name=mode]")) {
      radio.checked = radio.value === state.mode;
    }
    this.showMode();
    this.showJobs();
    this.find("file").value = state.file;
    this.find("builtin").value = state.builtin;
    this.find("cpus").value = state.cpus;
    this.find("seed").value = state.seed;
    this.find("until").value = state.until;
    this.find("costs").checked = state.costs;
    this.find("policy").value = state.policy;
    this.showRuns();
  }

  showMode() {
    for (const mode of ["table", "file", "builtin"]) {
      this.find("mode-" + mode).hidden = this.state.mode !== mode;
    }
  }

  listen() {
    const { state } = this;
    this.root.addEventListener("change", (event) => {
      if (event.target.name !== "mode") return;
      // The file starts as what the table says, and the table stays as it was.
      if (event.target.value === "file" && state.mode === "table") {
        state.file = fileOf(state.jobs);
        this.find("file").value = state.file;
      }
      state.mode = event.target.value;
      this.showMode();
      this.changed();
    });
    const follow = (id, act) =>
      this.find(id).addEventListener("input", (event) => {
        act(event.target);
        this.changed();
      });
    follow("file", ({ value }) => (state.file = value));
    follow("builtin", ({ value }) => (state.builtin = value));
    follow("policy", ({ value }) => (state.policy = value));
    follow("until", ({ value }) => (state.until = value.trim()));
    follow("costs", ({ checked }) => (state.costs = checked));
    follow("cpus", (input) => (state.cpus = this.number(input, state.cpus)));
    follow("seed", (input) => (state.seed = this.number(input, state.seed)));
    this.find("add-job").addEventListener("click", () => this.addJob());
    this.find("add-run").addEventListener("click", () => this.addRun());
    const examples = this.find("example");
    examples.append(element("option", { value: "" }, "Load an example \u2026"));
    EXAMPLES.forEach(({ name }, index) =>
      examples.append(element("option", { value: index }, name)),
    );
    examples.addEventListener("change", () => {
      const example = EXAMPLES[examples.value];
      examples.value = "";
      if (!example) return;
      state.jobs = example.jobs.map((row) => ({ ...row }));
      this.showJobs();
      this.changed();
    });
    const builtins = this.find("builtins");
    for (const { name } of this.lists.workloads) {
      builtins.append(element("option", { value: name }));
    }
    this.completion = new Completion(
      this.find("file"),
      this.find("file-proposals"),
      this.find("file-hint"),
    );
    keepIndent(this.find("file"));
    keepIndent(this.find("policy"));
  }

  /** The whole number in a field within its limits, else `old` and a mark. */
  number(input, old) {
    const value = Number(input.value);
    const good =
      input.value !== "" &&
      Number.isInteger(value) &&
      value >= Number(input.min) &&
      value <= Number(input.max);
    input.toggleAttribute("aria-invalid", !good);
    if (!good) input.setAttribute("aria-invalid", "true");
    return good ? value : old;
  }

  addJob() {
    const { jobs } = this.state;
    if (jobs.length >= JOBS_MAX) return;
    const names = new Set(jobs.map((row) => row.name));
    let number = jobs.length + 1;
    while (names.has("job" + number)) number++;
    jobs.push(job("job" + number, 0, 10));
    this.showJobs();
    this.find("jobs").querySelector("tbody tr:last-child input").focus();
    this.changed();
  }

  showJobs() {
    const body = this.find("jobs").tBodies[0];
    body.replaceChildren(...this.state.jobs.map((row, index) => this.jobRow(row, index)));
  }

  jobRow(row, index) {
    const line = element("tr");
    for (const [key, label, kind, width] of COLUMNS) {
      const title = `${label}, job ${index + 1}`;
      const field =
        kind === "select"
          ? select(POLICIES, row[key], title)
          : element("input", {
              "aria-label": title,
              inputmode: kind === "text" ? "text" : kind,
              size: width,
              value: row[key],
              autocomplete: "off",
            });
      field.dataset.key = key;
      field.addEventListener("input", () => {
        row[key] = field.value;
        this.changed();
      });
      line.append(element("td", {}, field));
    }
    const label = `Remove job ${index + 1}`;
    const remove = element("button", { type: "button", "aria-label": label, title: label });
    remove.append("\u00d7");
    remove.addEventListener("click", () => {
      this.state.jobs.splice(index, 1);
      this.showJobs();
      this.find("add-job").focus();
      this.changed();
    });
    line.append(element("td", {}, remove));
    return line;
  }

  addRun() {
    const { runs } = this.state;
    if (runs.length >= RUNS_MAX) return;
    runs.push({ scheduler: "rr", settings: { quantum: "4ms" } });
    this.showRuns();
    this.changed();
  }

  showRuns() {
    const { runs } = this.state;
    this.find("runs").replaceChildren(...runs.map((run, index) => this.runCard(run, index)));
    this.find("add-run").disabled = runs.length >= RUNS_MAX;
    this.find("policy-part").hidden = !runs.some((run) => run.scheduler === POLICY);
  }

  runCard(run, index) {
    const card = element("li", { class: "run" });
    const choice = select([], "", `Scheduler ${index + 1}`);
    const group = (label, names) => {
      const made = element("optgroup", { label });
      for (const [name, text] of names) made.append(element("option", { value: name }, text));
      choice.append(made);
    };
    group("Your own", [[POLICY, "Policy in JavaScript"]]);
    for (const [label, names] of this.groups()) group(label, names.map((name) => [name, name]));
    const known = run.scheduler === POLICY || this.byName.has(run.scheduler);
    if (!known) choice.append(element("option", { value: run.scheduler }, run.scheduler));
    choice.value = run.scheduler;
    choice.addEventListener("change", () => {
      run.scheduler = choice.value;
      run.settings = {};
      this.showRuns();
      this.find("runs").children[index].querySelector("select").focus();
      this.changed();
    });
    const head = element("div", { class: "run-head" });
    head.append(element("span", { class: `swatch-${index}`, "aria-hidden": "true" }), choice);
    if (this.state.runs.length > 1) {
      const label = `Remove scheduler ${index + 1}`;
      const remove = element("button", { type: "button", "aria-label": label, title: label });
      remove.append("\u00d7");
      remove.addEventListener("click", () => {
        this.state.runs.splice(index, 1);
        this.showRuns();
        this.find("add-run").focus();
        this.changed();
      });
      head.append(remove);
    }
    card.append(head);
    this.addSettings(card, run, index);
    return card;
  }

  /** Schedulers by kind, for the list. */
  groups() {
    const names = this.lists.schedulers.map((one) => one.name);
    const linux = names.filter((name) => name.startsWith("linux-"));
    const textbook = this.lists.schedulers.filter((one) => one.is_textbook).map((one) => one.name);
    const rest = names.filter((name) => !linux.includes(name) && !textbook.includes(name));
    return [
      ["Textbooks", textbook],
      ["Linux", linux.reverse()],
      ["Others", rest],
    ];
  }

  addSettings(card, run, index) {
    if (run.scheduler === POLICY) {
      const text = "The callbacks are below, under \u201cPolicy in JavaScript\u201d.";
      card.append(element("p", { class: "hint" }, text));
      return;
    }
    const scheduler = this.byName.get(run.scheduler);
    if (!scheduler) return;
    card.append(element("p", { class: "hint" }, scheduler.summary));
    const first = scheduler.tunables.filter(({ name }) => FIRST_SETTINGS.includes(name));
    const rest = scheduler.tunables.filter(({ name }) => !FIRST_SETTINGS.includes(name));
    for (const tunable of first) card.append(this.setting(run, tunable, index));
    if (!rest.length) return;
    const details = element("details", {}, element("summary", {}, "More settings"));
    details.open = rest.some(({ name }) => run.settings[name]);
    for (const tunable of rest) details.append(this.setting(run, tunable, index));
    card.append(details);
  }

  setting(run, tunable, index) {
    const id = `set-${index}-${tunable.name}`;
    const field = element("input", {
      id,
      value: run.settings[tunable.name] ?? "",
      placeholder: tunable.default,
      title: `${tunable.text}; allowed: ${tunable.allowed}`,
      autocomplete: "off",
      size: 8,
    });
    field.addEventListener("input", () => {
      if (field.value.trim()) run.settings[tunable.name] = field.value.trim();
      else delete run.settings[tunable.name];
      this.changed();
    });
    const label = element("label", { for: id, title: field.title }, tunable.name);
    return element("div", { class: "setting" }, label, field);
  }

  /** Marks the place of a problem of the workload, or none. */
  showProblem(problem) {
    const place = this.find(this.state.mode + "-problem");
    for (const id of ["table-problem", "file-problem", "builtin-problem"]) {
      this.find(id).textContent = "";
    }
    for (const marked of this.root.querySelectorAll("#workload [aria-invalid]")) {
      marked.removeAttribute("aria-invalid");
    }
    this.find("file-line").hidden = true;
    if (!problem) return;
    place.textContent = problem.text;
    if (this.state.mode === "table") {
      const row = this.find("jobs").tBodies[0].rows[problem.row];
      const fields = row ? [...row.querySelectorAll("[data-key]")] : [];
      const bad = fields.filter((f) => f.dataset.key === problem.key || !problem.key);
      bad.forEach((field) => field.setAttribute("aria-invalid", "true"));
      return;
    }
    const field = this.find(this.state.mode);
    field.setAttribute("aria-invalid", "true");
    if (this.state.mode === "file" && problem.line) {
      const go = this.find("file-line");
      go.hidden = false;
      go.textContent = `Go to line ${problem.line}`;
      go.onclick = () => goTo(field, problem.line, problem.column);
    }
  }
}

function select(values, value, label) {
  const made = element("select", { "aria-label": label });
  for (const one of values) made.append(element("option", { value: one }, one));
  made.value = value;
  return made;
}

/** Puts the cursor of a text field at a line and column, both from 1. */
function goTo(field, line, column) {
  const lines = field.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  const at = start + Math.max(0, (column || 1) - 1);
  field.focus();
  field.setSelectionRange(at, Math.max(at, start + (lines[line - 1] || "").length));
  const high = parseFloat(getComputedStyle(field).lineHeight) || 20;
  field.scrollTop = Math.max(0, (line - 4) * high);
}

/** A new line begins under the first character of the one before. */
function keepIndent(field) {
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.isComposing) return;
    const before = field.value.slice(0, field.selectionStart);
    const indent = /[ ]*/.exec(before.slice(before.lastIndexOf("\n") + 1))[0];
    if (!indent) return;
    event.preventDefault();
    field.setRangeText("\n" + indent, field.selectionStart, field.selectionEnd, "end");
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
}
