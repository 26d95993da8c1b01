// SPDX-License-Identifier: MIT OR Apache-2.0
// The exercises: one question at a time, marked by the simulator in the page. The address holds the
// number and the seed, so a teacher can send one.

/** Greatest seed that a new question draws. */
const SEED_MAX = 1000000;

class Exercises {
  constructor(engine, list) {
    Object.assign(this, { engine, list, turn: 0, sheet: null });
    this.find = (id) => document.getElementById(id);
    const choice = this.find("number");
    list.forEach(({ title }, index) =>
      choice.append(element("option", { value: index + 1 }, `${index + 1}. ${title}`)),
    );
    choice.addEventListener("change", () => this.open(Number(choice.value), this.seed));
    this.find("seed").addEventListener("change", ({ target }) => {
      const seed = Number(target.value);
      const good = target.value !== "" && Number.isInteger(seed) && seed >= 0 && seed < 2 ** 53;
      if (good) target.removeAttribute("aria-invalid");
      else target.setAttribute("aria-invalid", "true");
      if (good) this.open(this.number, seed);
    });
    this.find("again").addEventListener("click", () =>
      this.open(this.number, Math.floor(Math.random() * SEED_MAX)),
    );
    this.find("next").addEventListener("click", () =>
      this.open((this.number % list.length) + 1, this.seed),
    );
    this.find("answer-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.mark();
    });
    this.find("hint").addEventListener("click", () => this.hint());
    window.addEventListener("hashchange", () => this.openAddress());
  }

  /** The exercise that the address names, or the first. */
  openAddress() {
    const found = /^#(\d{1,3})\/(\d{1,15})$/.exec(location.hash);
    const number = found ? Number(found[1]) : 1;
    const known = number >= 1 && number <= this.list.length;
    return this.open(known ? number : 1, found ? Number(found[2]) : 1);
  }

  async open(number, seed) {
    const turn = ++this.turn;
    Object.assign(this, { number, seed });
    const { ok: sheet, error } = await this.engine.ask({ ask: "exercise", number, seed });
    if (turn !== this.turn) return;
    if (error) {
      this.find("result").textContent = error.text;
      return;
    }
    this.sheet = sheet;
    this.hints = 0;
    history.replaceState(null, "", `#${number}/${seed}`);
    this.find("number").value = number;
    this.find("seed").value = seed;
    await this.show(sheet);
    this.shown = turn;
  }

  async show(sheet) {
    this.find("title").textContent = `Exercise ${sheet.number}: ${sheet.title}`;
    this.find("rule").textContent = sheet.rule;
    const cpus = sheet.cpus === 1 ? "1 CPU" : `${sheet.cpus} CPUs`;
    const setup = `Scheduler ${sheet.scheduler}, ${cpus}. Switches take no time.`;
    this.find("setup").textContent = setup;
    this.find("jobs").replaceChildren(plainTable("Jobs", ...jobColumns(sheet.jobs)));
    const { columns, rows } = sheet.table;
    this.find("numbers").replaceChildren();
    if (rows.length) this.find("numbers").append(plainTable("Numbers", columns, rows));
    this.find("question").textContent = sheet.question;
    this.find("form").textContent = `Give ${sheet.form}.`;
    this.find("answer").value = "";
    this.find("result").textContent = "";
    this.find("result").className = "";
    this.find("hints").replaceChildren();
    this.find("hint").disabled = !sheet.hints.length;
    this.find("digest").textContent = sheet.digest;
    const command = `schedlab exercise ${sheet.number} --seed ${sheet.seed} --answer`;
    this.find("command").textContent = command;
    this.find("play").href = "playground.html#" + (await toLink(playState(sheet)));
    document.querySelectorAll(".scroll").forEach(watchScroll);
  }

  async mark() {
    const { number, seed } = this;
    const given = this.find("answer").value;
    const { ok, error } = await this.engine.ask({ ask: "mark", number, seed, given });
    if (number !== this.number || seed !== this.seed) return;
    const result = this.find("result");
    if (error) result.textContent = error.text;
    else result.textContent = ok.right ? "Right." : "Not right. Try again, or take a hint.";
    result.className = !error && ok.right ? "right" : "wrong";
  }

  hint() {
    const { hints } = this.sheet;
    this.find("hints").append(element("li", {}, hints[this.hints++]));
    this.find("hint").disabled = this.hints >= hints.length;
  }
}

/** Heads and rows of the table of jobs, without columns in which all are alike. */
function jobColumns(jobs) {
  const sleeps = jobs.some((one) => one.rounds > 1);
  const ranks = jobs.some((one) => one.priority !== 0);
  const isRt = jobs.some((one) => one.policy !== "OTHER");
  const columns = [
    ["job", (one) => one.name],
    ["released (ms)", (one) => one.release],
    ["runs (ms)", (one) => one.run],
    ...(sleeps ? [["sleeps (ms)", (one) => one.sleep], ["rounds", (one) => one.rounds]] : []),
    ...(isRt ? [["policy", (one) => one.policy]] : []),
    ...(ranks ? [[isRt ? "priority" : "nice", (one) => one.priority]] : []),
  ];
  return [columns.map(([name]) => name), jobs.map((one) => columns.map(([, value]) => value(one)))];
}

/** A table whose first column names the rows. */
function plainTable(label, columns, rows) {
  const head = element("tr");
  columns.forEach((name, index) =>
    head.append(element("th", { scope: "col", class: index ? "num" : "" }, name)),
  );
  const body = element("tbody");
  for (const row of rows) {
    const line = element("tr");
    row.forEach((value, index) =>
      line.append(
        index
          ? element("td", { class: "num" }, String(value))
          : element("th", { scope: "row" }, String(value)),
      ),
    );
    body.append(line);
  }
  const table = element("table", { "aria-label": label }, element("thead", {}, head), body);
  return element("div", { class: "scroll" }, table);
}

/** The state of the playground in which an exercise runs. */
function playState(sheet) {
  const [scheduler, more] = sheet.scheduler.split(":");
  const settings = {};
  for (const pair of (more || "").split(",")) {
    const [name, value] = pair.split("=");
    if (value) settings[name] = value;
  }
  const jobs = sheet.jobs.map(({ name, release, run, sleep, rounds, policy, priority }) =>
    job(name, release, run, {
      sleep: String(sleep),
      rounds: String(rounds),
      policy,
      priority: String(priority),
    }),
  );
  const { cpus, until } = sheet;
  const runs = [{ scheduler, settings }];
  return { ...startState(), jobs, file: fileOf(jobs), cpus, until: until || "", runs };
}

async function setUpExercises() {
  try {
    const engine = (schedlab.engine = new Engine());
    const { ok: list, error } = await engine.ask({ ask: "exercises" });
    if (error) throw new Error(error.text);
    schedlab.exercises = new Exercises(engine, list);
    await schedlab.exercises.openAddress();
  } catch (error) {
    document.getElementById("result").textContent =
      `The simulator could not start: ${error.message}`;
    throw error;
  }
}

schedlab.ready = setUpExercises();
