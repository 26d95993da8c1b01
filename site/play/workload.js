// SPDX-License-Identifier: MIT OR Apache-2.0
// The table of jobs, and the workload file that it stands for: one line for each job, so that the
// line of an error is the row of a job.

/** Lines of the file before the first job. */
const LINES_BEFORE = 2;
const JOBS_MAX = 200;
const POLICIES = ["OTHER", "BATCH", "IDLE", "FIFO", "RR"];

/** A job: times in milliseconds, as text because a reader types it. */
function job(name, release, run, more = {}) {
  return {
    name,
    release: String(release),
    run: String(run),
    sleep: "0",
    rounds: "1",
    policy: "OTHER",
    priority: "0",
    ...more,
  };
}

const EXAMPLES = [
  {
    name: "Five jobs",
    jobs: [job("A", 0, 8), job("B", 1, 4), job("C", 2, 9), job("D", 3, 5), job("E", 4, 2)],
  },
  {
    name: "Convoy: one long job before short ones",
    jobs: [job("long", 0, 24), job("s1", 0, 3), job("s2", 0, 3), job("late", 12, 2)],
  },
  {
    name: "Interactive task among hogs",
    jobs: [
      job("editor", 0, 1, { sleep: "9", rounds: "12" }),
      job("hog1", 0, 60),
      job("hog2", 0, 60),
    ],
  },
  {
    name: "Nice values 0, 5 and 10",
    jobs: [
      job("nice0", 0, 60),
      job("nice5", 0, 60, { priority: "5" }),
      job("nice10", 0, 60, { priority: "10" }),
    ],
  },
  {
    name: "A real-time task and two others",
    jobs: [
      job("rt", 4, 2, { sleep: "8", rounds: "6", policy: "FIFO", priority: "50" }),
      job("a", 0, 40),
      job("b", 0, 40),
    ],
  },
];

/** A time of the table in the words of a workload file. */
function ms(text) {
  return JSON.stringify(`${text.trim()}ms`);
}

/** The members of one job in a workload file. */
function members(row) {
  const parts = [];
  const rounds = Number(row.rounds) || 1;
  if (Number(row.release) !== 0) parts.push(`"delay": ${ms(row.release)}`);
  if (row.policy !== "OTHER") parts.push(`"policy": "SCHED_${row.policy}"`);
  if (Number(row.priority) !== 0) parts.push(`"priority": ${Number(row.priority)}`);
  parts.push(`"loop": 1`, `"run": ${ms(row.run)}`);
  if (rounds > 1) {
    const sleep = Number(row.sleep) > 0 ? `"sleep": ${ms(row.sleep)}, ` : "";
    parts.push(`"repeat": { "loop": ${rounds - 1}, ${sleep}"run": ${ms(row.run)} }`);
  }
  return parts.join(", ");
}

/** The workload file of a table. */
function fileOf(jobs) {
  const lines = jobs.map((row) => `    ${JSON.stringify(row.name)}: { ${members(row)} }`);
  return `{\n  "tasks": {\n${lines.join(",\n")}\n  }\n}\n`;
}

/** What is wrong with a cell, or nothing. */
function cellProblem(key, text, row) {
  const value = Number(text);
  const isNumber = text.trim() !== "" && Number.isFinite(value);
  switch (key) {
    case "name":
      if (!text.trim()) return "a job needs a name";
      return text.length > 64 ? "a name has at most 64 characters" : "";
    case "release":
    case "sleep":
      return isNumber && value >= 0 ? "" : "a time in ms, 0 or more";
    case "run":
      return isNumber && value > 0 ? "" : "a time in ms, above 0";
    case "rounds":
      return Number.isInteger(value) && value >= 1 && value <= 100000 ? "" : "1 to 100000";
    case "priority": {
      const isRt = row.policy === "FIFO" || row.policy === "RR";
      const [least, most] = isRt ? [1, 99] : [-20, 19];
      const fits = Number.isInteger(value) && isNumber && value >= least && value <= most;
      return fits ? "" : `${least} to ${most} under ${row.policy}`;
    }
    default:
      return "";
  }
}

/** The first problem of a table: `{row, key, text}`, or null. */
function tableProblem(jobs) {
  if (!jobs.length) return { row: -1, key: "", text: "There is no job: add one." };
  const names = new Set();
  for (const [index, row] of jobs.entries()) {
    for (const key of ["name", "release", "run", "sleep", "rounds", "priority"]) {
      const text = cellProblem(key, row[key], row);
      if (text) return { row: index, key, text: `Row ${index + 1}, ${key}: ${text}.` };
    }
    if (names.has(row.name)) {
      const text = `Row ${index + 1}: another job is called ${row.name} too. Change one name.`;
      return { row: index, key: "name", text };
    }
    names.add(row.name);
  }
  return null;
}
