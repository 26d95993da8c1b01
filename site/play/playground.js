// SPDX-License-Identifier: MIT OR Apache-2.0
// Puts the playground together: a change of the form runs every scheduler again, shows what came
// out, and changes the address.

const WAIT_MS = 150;

/** What was found, and what to do. */
function errorText({ text, help }) {
  return help ? `${text}. ${help[0].toUpperCase()}${help.slice(1)}.` : text;
}

class Playground {
  constructor(state, lists, engine) {
    Object.assign(this, { state, lists, engine });
    this.find = (id) => document.getElementById(id);
    this.results = [];
    this.turn = 0;
    /** A policy that came with a link runs only when its reader asks for it. */
    this.policyAllowed = true;
    this.form = new Form(document.body, state, lists, () => this.later());
    this.find("run").addEventListener("click", () => {
      this.policyAllowed = true;
      this.run();
    });
    this.find("policy").addEventListener("input", () => (this.policyAllowed = true));
    this.setUpTaking();
  }

  /** Runs a moment after the last change. */
  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run(), WAIT_MS);
  }

  say(text) {
    this.find("status").textContent = text;
  }

  /** The workload as the simulator takes it. */
  workload() {
    const { state } = this;
    if (state.mode === "builtin") return { workload: state.builtin.trim() };
    const file = state.mode === "table" ? fileOf(state.jobs) : state.file;
    return { workload: file, workload_name: "workload.json" };
  }

  request(run) {
    const { state } = this;
    const request = {
      ...this.workload(),
      scheduler: run.scheduler,
      cpus: state.cpus,
      costs: state.costs ? "default" : "zero",
      seed: state.seed,
      tunables: run.settings,
    };
    if (state.until) request.until = state.until;
    return request;
  }

  /** The policy's text, for a run that needs it. */
  source(run) {
    return run.scheduler === POLICY ? this.state.policy : undefined;
  }

  title(run, index) {
    const name = run.scheduler === POLICY ? "your policy" : run.scheduler;
    const set = Object.entries(run.settings).map(([key, value]) => `${key} ${value}`);
    const title = set.length ? `${name}, ${set.join(", ")}` : name;
    const same = this.state.runs.filter((other) => other.scheduler === run.scheduler).length > 1;
    return same && !set.length ? `${title} (${index + 1})` : title;
  }

  /** Runs every scheduler. `shown` is the last round whose result the page shows. */
  async run() {
    clearTimeout(this.timer);
    const turn = ++this.turn;
    await this.round(turn);
    if (turn === this.turn) this.shown = turn;
  }

  async round(turn) {
    const begun = performance.now();
    this.saveLink();
    this.find("policy-problem").textContent = "";
    this.find("machine-problem").textContent = "";
    this.find("until").removeAttribute("aria-invalid");
    const wrong = this.state.mode === "table" ? tableProblem(this.state.jobs) : null;
    this.form.showProblem(wrong);
    if (wrong) {
      this.say("Nothing was run: the table has a mistake.");
      return;
    }
    const checked = await this.check();
    if (turn !== this.turn) return;
    if (checked.error) {
      this.showWrong(checked.error);
      this.say("Nothing was run: see the message in red.");
      return;
    }
    const runs = this.state.runs.map((run) => ({ ...run, settings: { ...run.settings } }));
    const results = [];
    const problems = [];
    for (const [index, run] of runs.entries()) {
      if (run.scheduler === POLICY && !this.policyAllowed) {
        const text = "This policy came with the link. Read it, then press Run.";
        this.find("policy-problem").textContent = text;
        problems.push(`your policy: ${text}`);
        continue;
      }
      const title = this.title(run, index);
      const answer = await this.engine.ask(
        { ask: "run", request: this.request(run) },
        this.source(run),
      );
      // A newer change has begun another round.
      if (turn !== this.turn) return;
      if (answer.error) {
        problems.push(this.problem(title, run, answer.error));
      } else results.push({ title, run, index, ...answer });
    }
    this.show(results, problems);
    const took = performance.now() - begun;
    schedlab.runMs = took;
    const done = `${results.length} of ${runs.length} runs in ${Math.ceil(took)}\u00a0ms.`;
    this.say(problems.length ? `${done} ${problems.length} could not run.` : done);
  }

  /** Whether jobs and machine are right, whatever the schedulers are. */
  check() {
    const request = this.request({ scheduler: "fcfs", settings: {} });
    return this.engine.ask({ ask: "check", request });
  }

  /** Shows a mistake in the jobs or the machine where it is. */
  showWrong(error) {
    const text = errorText(error);
    if (text.startsWith("until is ")) {
      this.find("machine-problem").textContent = text;
      this.find("until").setAttribute("aria-invalid", "true");
      return;
    }
    const [line, column] = error.place || [0, 0];
    const row = this.state.mode === "table" && line ? line - 1 - LINES_BEFORE : -1;
    this.form.showProblem({ text, line, column, row, key: "" });
  }

  /** Shows why a scheduler did not run. Returns the text. */
  problem(title, run, error) {
    const text = errorText(error);
    if (run.scheduler === POLICY) this.find("policy-problem").textContent = text;
    return `${title}: ${text}`;
  }

  show(results, problems) {
    this.results = results;
    const notices = [...problems];
    for (const { title, ok } of results) {
      for (const warning of ok.result.warnings) notices.push(`${title}: ${warning.text}`);
    }
    const list = this.find("notices");
    list.replaceChildren(...[...new Set(notices)].map((text) => element("li", {}, text)));
    this.find("notices-part").hidden = !notices.length;
    this.find("results").hidden = !results.length;
    if (!results.length) return;
    const panels = results.map(({ title, ok, columns }) =>
      panelOf(title, ok, columns, this.lists.end_names),
    );
    this.drawTimeline(panels);
    const lines = results.map(({ title, columns }) => ({
      title,
      queue: queueOf(columns.wait_start, columns.wait_end),
    }));
    this.queue.replace(lines);
    this.describe(panels, lines);
    const measured = results.map(({ title, ok }) => ({ title, ...ok.result.measures }));
    showMeasures(this.find("measures"), measured);
    this.explainFirst();
  }

  drawTimeline(panels) {
    if (this.timeline) {
      this.timeline.replace(panels);
      return;
    }
    const events = {
      shown: () => this.queue && this.queue.draw(),
      asked: (chosen) => this.explain(chosen),
    };
    this.timeline = new PlayTimeline(this.find("timeline"), panels, events);
    schedlab.figures.set("timeline", this.timeline);
    this.queue = new QueueChart(this.find("queue-plot"), this.find("queue-readout"), this.timeline);
    const redraw = () => {
      this.timeline.redraw();
      this.queue.draw();
    };
    let width = window.innerWidth;
    window.addEventListener("resize", () => {
      if (window.innerWidth !== width) redraw((width = window.innerWidth));
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  }

  /** Text alternatives of the pictures, and the legend of the lines. */
  describe(panels, lines) {
    const runs = panels.map(
      ({ title, count, end_ns: end }) => `${title}: ${count} slices in ${duration(end)}`,
    );
    const timeline = `CPU timeline of ${panels.length} runs. ${runs.join("; ")}.`;
    this.timeline.plot.setAttribute("aria-label", timeline);
    const most = lines.map(({ title, queue }) => `${title}: at most ${queue.most}`);
    const plot = this.find("queue-plot");
    plot.setAttribute("aria-label", `Tasks waiting for a CPU over time. ${most.join("; ")}.`);
    const dashes = ["", "6 3", "2 3", "8 3 2 3"];
    const legend = lines.map(({ title }, index) => {
      const item = element("li", { class: `c${index}` });
      item.innerHTML =
        '<svg class="swatch" width="26" height="10" aria-hidden="true"><path d="M0 5H26" ' +
        `stroke="currentColor" stroke-width="2" stroke-dasharray="${dashes[index % 4]}"/></svg>`;
      item.append(element("span", { class: "ink" }, title));
      return item;
    });
    this.find("queue-legend").replaceChildren(...legend);
  }

  /** The second block of the first run, as an example of what a click gives. */
  explainFirst() {
    const row = this.timeline.rows.find((one) => one.kind === "cpu" && one.start.length);
    if (!row) return;
    this.timeline.last = { row, index: Math.min(1, row.start.length - 1) };
    this.explain(this.timeline.last);
  }

  /** Explains the pick that began a block of the timeline. */
  async explain({ row, index }) {
    const turn = (this.explainTurn = (this.explainTurn || 0) + 1);
    const which = this.timeline.panels.indexOf(row.panel);
    const result = this.results[which];
    if (!result) return;
    const slice = row.members[index];
    const about = { at_ns: row.panel.start[slice], cpu: row.panel.cpu[slice] };
    const answer = await this.engine.ask(
      { ask: "explain", request: this.request(result.run), about },
      this.source(result.run),
    );
    if (turn !== this.explainTurn) return;
    const place = this.find("why-text");
    const decision = answer.ok && answer.ok.decisions[0];
    if (decision) {
      showDecision(place, result.title, decision);
      return;
    }
    const text = answer.error ? answer.error.text : "There is no decision at this time.";
    place.replaceChildren(element("p", { class: "notice" }, text));
  }

  /** Another block of the same row. */
  stepWhy(by) {
    const { timeline } = this;
    if (!timeline) return;
    if (!timeline.chosen && timeline.last) timeline.chosen = timeline.last;
    timeline.step(0, by);
  }

  async saveLink() {
    const turn = this.turn;
    const link = await toLink(this.state);
    if (turn === this.turn) history.replaceState(null, "", "#" + link);
    schedlab.link = link;
  }

  setUpTaking() {
    this.find("why-before").addEventListener("click", () => this.stepWhy(-1));
    this.find("why-after").addEventListener("click", () => this.stepWhy(1));
    const save = (name, blob) => {
      const address = URL.createObjectURL(blob);
      element("a", { href: address, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(address), 10000);
    };
    this.find("save-svg").addEventListener("click", () =>
      save("timeline.svg", new Blob([this.timeline.svg()], { type: "image/svg+xml" })),
    );
    this.find("save-png").addEventListener("click", async () =>
      save("timeline.png", await this.timeline.png()),
    );
    this.find("save-csv").addEventListener("click", () =>
      save("timeline.csv", csvBlob(this.timeline.table())),
    );
    this.find("save-workload").addEventListener("click", () => {
      const { workload } = this.workload();
      save("workload.json", new Blob([workload], { type: "application/json" }));
    });
    this.find("copy-link").addEventListener("click", async () => {
      await this.saveLink();
      const address = location.href;
      try {
        await navigator.clipboard.writeText(address);
        this.say("The link is in the clipboard.");
      } catch {
        this.say("The link is the address of this page: copy it from there.");
      }
    });
  }
}

async function setUpPlayground() {
  const say = (text) => (document.getElementById("status").textContent = text);
  try {
    const engine = (schedlab.engine = new Engine());
    const answer = await engine.ask({ ask: "lists" });
    if (answer.error) throw new Error(answer.error.text);
    const fragment = location.hash.slice(1);
    let state = startState();
    let problem = "";
    if (fragment) {
      try {
        state = await fromLink(fragment);
      } catch (error) {
        problem = `This link cannot be read (${error.message}); here is the first example. `;
      }
    }
    const playground = (schedlab.playground = new Playground(state, answer.ok, engine));
    const own = state.policy !== POLICY_START;
    playground.policyAllowed = !own;
    window.addEventListener("hashchange", () => location.reload());
    await playground.run();
    if (problem) playground.say(problem + document.getElementById("status").textContent);
    schedlab.firstResultMs = performance.now();
  } catch (error) {
    say(`The simulator could not start: ${error.message}`);
    throw error;
  }
}

schedlab.ready = setUpPlayground();
