// SPDX-License-Identifier: MIT OR Apache-2.0
// Opens the exercises by file:// in headless Chromium and works on them as a reader would. The
// digests of the sheets are those that the native program makes.
//
// Environment: CHROMIUM (browser), SITE (folder that `cargo xtask site` has built), SCREENSHOTS
// (optional folder for pictures of the pages). tests/browser/run.sh sets the first two.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import * as common from "./common.mjs";
import { DESKTOP, PHONE, close, tooWide, violations } from "./common.mjs";

const file = path.join(process.env.SITE || "", "exercises.html");
const GOLDEN = new URL("../exercises/digests.txt", import.meta.url);

function open(options = DESKTOP, fragment = "") {
  return common.open(file, options, fragment);
}

/** Opens an exercise in the page. */
function show(page, number, seed) {
  return page.evaluate(([n, s]) => schedlab.exercises.open(n, s), [number, seed]);
}

async function mark(page, given) {
  await page.locator("#answer").fill(given);
  await page.evaluate(() => (document.getElementById("result").textContent = ""));
  await page.locator("#answer-form button[type=submit]").click();
  await page.waitForFunction(() => document.getElementById("result").textContent);
  return page.locator("#result").innerText();
}

test("every sheet has the digest of the native program", async () => {
  const page = await open();
  const lines = (await readFile(GOLDEN, "utf8")).trim().split("\n");
  assert.ok(lines.length >= 60, `${lines.length} sheets`);
  for (const line of lines) {
    const [number, seed, digest] = line.split(" ");
    await show(page, Number(number), Number(seed));
    assert.equal(await page.locator("#digest").innerText(), digest, line);
    assert.match(await page.locator("#question").innerText(), /\?$/);
  }
  await close(page);
});

test("answers are marked, and the address holds the sheet", async () => {
  const page = await open(DESKTOP, "#2/7");
  assert.match(await page.locator("#title").innerText(), /^Exercise 2: /);
  const jobs = await page.locator("#jobs tbody tr").evaluateAll((rows) =>
    rows.map((row) => [...row.cells].slice(1).map((cell) => Number(cell.textContent))),
  );
  // First come, first served, by hand.
  let now = 0;
  let sum = 0;
  for (const [release, run] of jobs) {
    now = Math.max(now, release) + run;
    sum += now - release;
  }
  const mean = sum / jobs.length;
  assert.equal(await mark(page, mean.toFixed(2)), "Right.");
  assert.match(await mark(page, String(mean + 1)), /^Not right/);
  assert.match(await mark(page, "soon"), /give a time in ms/);
  await page.locator("#hint").click();
  assert.equal(await page.locator("#hints li").count(), 1);
  await page.locator("#again").click();
  await page.waitForFunction(() => /^#2\/\d+$/.test(location.hash) && location.hash !== "#2/7");
  await page.locator("#number").selectOption("34");
  await page.waitForFunction(() => location.hash.startsWith("#34/"));
  await close(page);
});

test("the playground shows the run of a sheet", async () => {
  const page = await open(DESKTOP, "#12/3");
  const jobs = await page.locator("#jobs tbody tr").count();
  await page.locator("#play").click();
  await page.waitForURL(/playground\.html#1/);
  await page.evaluate(() => schedlab.ready);
  const { runs, tasks } = await page.evaluate(() => ({
    runs: schedlab.playground.state.runs,
    tasks: schedlab.figures.get("timeline").panels[0].tasks.length,
  }));
  assert.deepEqual(runs, [{ scheduler: "rr", settings: { quantum: "4ms" } }]);
  assert.equal(tasks, jobs);
  await close(page);
});

test("axe finds nothing on a wide screen and on a phone", async () => {
  for (const [options, name] of [[{ viewport: { width: 1400, height: 900 } }, "exercises"],
    [PHONE, "exercises-phone"]]) {
    const page = await open(options, "#33/1");
    assert.deepEqual(await violations(page), [], name);
    await mark(page, "A");
    assert.deepEqual(await violations(page), [], name);
    assert.deepEqual(await tooWide(page), []);
    await close(page, name);
  }
});
