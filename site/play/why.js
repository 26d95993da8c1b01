// SPDX-License-Identifier: MIT OR Apache-2.0
// One decision in words and numbers, as `schedlab explain` prints it.

/** A time in ms, exact to the nanosecond. */
function exactTime(ns) {
  const whole = Math.floor(ns / 1e6);
  return `${whole}.${String(Math.round(ns - whole * 1e6)).padStart(6, "0")}\u00a0ms`;
}

const UNKNOWN_NS = 9.2e18;

function factText({ value, unit }) {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return String(value);
  if (unit === "ns" && value > UNKNOWN_NS) return "unknown";
  if (!unit) return String(value);
  return (value < 0 ? "\u2212" : "") + exactTime(Math.abs(value));
}

function listed(facts) {
  if (!facts.length) return "";
  return ": " + facts.map((fact) => `${fact.name} ${factText(fact)}`).join(", ");
}

/** The heading of a decision. */
function decisionTitle(decision) {
  const name = (value) => value ?? "idle";
  const what =
    decision.next !== null && decision.prev === decision.next
      ? `${decision.next_name} goes on`
      : `${name(decision.prev_name)} \u2192 ${name(decision.next_name)}`;
  return `${exactTime(decision.time_ns)}, CPU ${decision.cpu}: ${what}`;
}

function contestTable(contest) {
  const names = [...new Set(contest.candidates.flatMap((c) => c.facts.map((f) => f.name)))];
  const head = element("tr");
  for (const text of ["candidate", "state", ...names]) {
    const attributes = { scope: "col" };
    if (names.includes(text)) attributes.class = "num";
    head.append(element("th", attributes, text));
  }
  const body = element("tbody");
  for (const candidate of contest.candidates) {
    const state = candidate.running ? "running" : candidate.considered ? "" : "not considered";
    const row = element("tr", candidate.chosen ? { class: "chosen" } : {});
    const mark = candidate.chosen ? "\u2192 " : "";
    row.append(element("th", { scope: "row" }, mark + candidate.name));
    row.append(element("td", {}, candidate.chosen ? `picked ${state}`.trim() : state));
    for (const name of names) {
      const fact = candidate.facts.find((found) => found.name === name);
      row.append(element("td", { class: "num" }, fact ? factText(fact) : "\u2013"));
    }
    body.append(row);
  }
  const table = element("table", {}, element("thead", {}, head), body);
  return element("div", { class: "scroll" }, table);
}

/** Fills `place` with a decision. */
function showDecision(place, title, decision) {
  place.replaceChildren();
  place.append(element("h3", {}, `${title}: ${decisionTitle(decision)}`));
  const { cause } = decision;
  place.append(element("p", {}, `Because ${cause.text}${listed(cause.facts)}.`));
  if (cause.facts_before.length) {
    place.append(element("p", {}, `Before the tick${listed(cause.facts_before)}.`));
  }
  for (const contest of decision.contests) {
    if (contest.rule === "empty" && decision.contests.length > 1) continue;
    const group = contest.group ? `, group ${contest.group}` : "";
    const text = `Class ${contest.class}${group}: ${contest.rule_text}${listed(contest.facts)}.`;
    place.append(element("p", { class: "rule" }, text));
    if (contest.candidates.length) place.append(contestTable(contest));
    if (contest.nr_omitted > 0) {
      place.append(element("p", {}, `${contest.nr_omitted} more candidates are not listed.`));
    }
  }
  place.querySelectorAll(".scroll").forEach(watchScroll);
}
