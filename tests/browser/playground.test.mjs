// SPDX-License-Identifier: MIT OR Apache-2.0
// Opens the playground by file:// in headless Chromium and uses it as a reader would: a first
// result, a link, mistakes, a policy in JavaScript, an endless loop, pictures, a phone.
//
// Environment: CHROMIUM (browser), SITE (folder that `cargo xtask site` has built), SCREENSHOTS
// (optional folder for pictures of the pages). tests/browser/run.sh sets the first two.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import * as common from "./common.mjs";
import { DESKTOP, PHONE, close, nextFrame, tooWide, violations } from "./common.mjs";

const file = path.join(process.env.SITE || "", "playground.html");
const WIDE = { viewport: { width: 1400, height: 1000 } };

function open(options = DESKTOP, fragment = "") {
  return common.open(file, options, fragment);
}

/** Does something to the page and waits for the round of runs that follows. */
async function after(page, act) {
  const turn = await page.evaluate(() => schedlab.playground.turn);
  await act();
  await page.waitForFunction(
    (before) => {
      const { turn, shown } = schedlab.playground;
      return turn > before && shown === turn;
    },
    turn,
    { timeout: 20000 },
  );
  await nextFrame(page);
}

/** The slices of run number `index` as "task start end end". */
function slices(page, index) {
  return page.evaluate((which) => {
    const panel = schedlab.figures.get("timeline").panels[which];
    return Array.from(panel.start, (start, i) =>
      [panel.tasks[panel.task[i]].name, start, panel.end[i], panel.ends[panel.how[i]]].join(" "),
    );
  }, index);
}

function text(page, selector) {
  return page.locator(selector).innerText();
}

/** Chooses schedulers by name. */
async function choose(page, names, cpus = 1) {
  await after(page, () =>
    page.evaluate(
      ([list, count]) => {
        const { playground } = schedlab;
        playground.state.cpus = count;
        playground.state.runs = list.map(([scheduler, settings]) => ({ scheduler, settings }));
        playground.form.show();
        playground.later();
      },
      [names, cpus],
    ),
  );
}

test("it opens from a file with a first result within a second, and asks nobody", async () => {
  const page = await open(WIDE);
  const { first, runs } = await page.evaluate(() => ({
    first: schedlab.firstResultMs,
    runs: schedlab.playground.results.length,
  }));
  console.log(`first result after ${Math.round(first)} ms`);
  assert.equal(runs, 4);
  const folder = pathToFileURL(process.env.SITE).href;
  const foreign = page.requests.filter(
    (url) => !url.startsWith(folder) && !/^(blob|data):/.test(url),
  );
  assert.deepEqual(foreign, []);
  assert.match(await text(page, "#status"), /^4 of 4 runs in/);
  // By hand: turnarounds 8, 11, 19, 23 and 24 ms; responses 0, 7, 10, 18 and 22 ms.
  const row = await page.locator("#totals tbody tr").first().innerText();
  assert.match(row, /^fcfs\s+17\.0\sms\s+11\.4\sms/);
  await page.waitForSelector("#why-text h3");
  assert.match(await text(page, "#why-text h3"), /fcfs: 8\.000000\sms, CPU 0: A → B/);
  await close(page, "playground");
});

test("a link restores the whole state", async () => {
  const page = await open();
  await choose(page, [["lottery", { slice: "3ms" }], ["linux-2.4.18", {}]], 2);
  await after(page, () => page.locator("#jobs tbody tr:first-child input").first().fill("first"));
  await page.waitForFunction(() => location.hash.length > 20);
  const { fragment, state } = await page.evaluate(async () => {
    await schedlab.playground.saveLink();
    return { fragment: location.hash, state: schedlab.playground.state };
  });
  const expected = await slices(page, 0);
  await close(page);
  const again = await open(DESKTOP, fragment);
  assert.deepEqual(await again.evaluate(() => schedlab.playground.state), state);
  assert.deepEqual(await slices(again, 0), expected);
  assert.ok(expected.some((slice) => slice.startsWith("first ")));
  const name = again.locator("#jobs tbody tr:first-child input").first();
  assert.equal(await name.inputValue(), "first");
  await close(again);
});

test("a link that is no state is refused, and hostile values are left out", async () => {
  const page = await open(DESKTOP, "#1@@@");
  assert.match(await text(page, "#status"), /This link cannot be read/);
  const state = await page.evaluate(async () => {
    const evil = { mode: "evil", cpus: 1e9, jobs: [{ name: 7, policy: "<img>" }], runs: [{}, 1] };
    return fromLink(await toLink(evil));
  });
  assert.deepEqual([state.mode, state.cpus, state.jobs[0].name], ["table", 1, "job"]);
  assert.deepEqual([state.jobs[0].policy, state.runs[0].scheduler], ["OTHER", "rr"]);
  const bomb = await page.evaluate(() =>
    toLink({ file: "x".repeat(5e6) }).then(fromLink).then(() => "read", (error) => error.message),
  );
  assert.match(bomb, /too much/);
  await close(page);
});

test("a policy in JavaScript has the very slices of the built-in round robin", async () => {
  const page = await open();
  for (const cpus of [1, 2]) {
    await choose(page, [["rr", { quantum: "4ms" }], ["policy", {}]], cpus);
    const [built, own] = [await slices(page, 0), await slices(page, 1)];
    assert.ok(built.length > 5, `${built.length} slices`);
    assert.deepEqual(own, built, `${cpus} CPUs`);
  }
  await after(page, () => page.locator("#policy").fill("policy({ pick: (cpu, w) => w.at(-1) });"));
  assert.notDeepEqual(await slices(page, 1), await slices(page, 0));
  await page.evaluate(() => schedlab.figures.get("timeline").step(2, 0));
  await close(page);
});

test("mistakes of a policy are shown with their line", async () => {
  const page = await open();
  await choose(page, [["policy", {}]]);
  const wrong = [
    ["policy({\n  pick() { return nothing; },\n});", /line 2: ReferenceError: nothing is not/],
    ["policy({ pick: () => 99 });", /pick returned 99: return one of the waiting .*A \(id 0\)/],
    ["policy({ pick: (c, w) => w[0], quantum: () => -1 });", /quantum returned -1: return milli/],
    ["policy({ pick: (c, w) => w[0], later() {} });", /knows no callback later/],
    ["policy({", /Unexpected token|Unexpected end/],
    ["", /has no pick/],
  ];
  for (const [source, expected] of wrong) {
    await after(page, () => page.locator("#policy").fill(source));
    assert.match(await text(page, "#policy-problem"), expected, source);
  }
  page.problems = page.problems.filter((problem) => !/Unexpected|SyntaxError/.test(problem));
  await close(page);
});

test("an endless policy is stopped, and the page goes on", async () => {
  const page = await open();
  await choose(page, [["fcfs", {}], ["policy", {}]]);
  await after(page, () => page.locator("#policy").fill("policy({ pick() { for (;;); } });"));
  assert.match(await text(page, "#policy-problem"), /was stopped. The policy may/);
  assert.equal((await slices(page, 0)).length, 5, "the other scheduler has its result");
  await after(page, () => page.locator("#policy").fill("policy({ pick: (c, w) => w[0] });"));
  assert.equal(await page.locator("#policy-problem").innerText(), "");
  assert.deepEqual(await slices(page, 1), await slices(page, 0), "first come, first served");
  await close(page);
});

test("a policy that came with a link waits for its reader, and reaches no server", async () => {
  const page = await open();
  const fragment = await page.evaluate(async () => {
    const source = "fetch('https://example.invalid/'); policy({ pick: (c, w) => w[0] });";
    const runs = [{ scheduler: "policy", settings: {} }];
    return "#" + (await toLink({ ...startState(), runs, policy: source }));
  });
  await close(page);
  const again = await open(DESKTOP, fragment);
  assert.match(await text(again, "#policy-problem"), /came with the link/);
  assert.equal(await again.evaluate(() => schedlab.playground.results.length), 0);
  await after(again, () => again.locator("#run").click());
  assert.equal((await slices(again, 0)).length, 5);
  assert.ok(!again.requests.some((url) => url.includes("example.invalid")), "nothing was sent");
  again.problems = again.problems.filter((p) => !/Content Security Policy|Failed to fetch/.test(p));
  await close(again);
});

test("a wrong workload is refused in place", async () => {
  const page = await open();
  await after(page, () => page.locator("[name=mode][value=file]").check());
  const good = await page.locator("#file").inputValue();
  await after(page, () => page.locator("#file").fill(good.replace('"run"', '"rnu"')));
  assert.match(await text(page, "#file-problem"), /rnu.*\n?.*did you mean `run/is);
  assert.equal(await page.locator("#file").getAttribute("aria-invalid"), "true");
  await page.locator("#file-line").click();
  const at = await page.evaluate(() => {
    const { value, selectionStart } = document.getElementById("file");
    return value.slice(selectionStart, selectionStart + 5);
  });
  assert.equal(at, '"rnu"');
  await after(page, () => page.locator("#file").fill(good));
  assert.equal(await page.locator("#file-problem").innerText(), "");
  await after(page, () => page.locator("[name=mode][value=table]").check());
  const run = page.locator("#jobs tbody tr:nth-child(2) [data-key=run]");
  await run.fill("0");
  await page.waitForFunction(() => document.getElementById("table-problem").textContent);
  assert.match(await text(page, "#table-problem"), /Row 2, run: a time in ms, above 0/);
  assert.equal(await run.getAttribute("aria-invalid"), "true");
  await run.fill("4");
  const name = page.locator("#jobs tbody tr:nth-child(3) [data-key=name]");
  await name.fill("a/b");
  await page.waitForFunction(() => /allowed|letters/.test(
    document.getElementById("table-problem").textContent,
  ));
  const marked = await page.locator("#jobs tbody tr:nth-child(3) [aria-invalid=true]").count();
  assert.ok(marked > 0, "the row of the mistake is marked");
  await close(page);
});

/** The proposals that the page shows. */
function proposed(page) {
  return page.locator("#file-proposals [role=option] b").allInnerTexts();
}

test("keys and values of a workload file are proposed where they fit", async () => {
  const page = await open();
  await after(page, () => page.locator("[name=mode][value=file]").check());
  const file = page.locator("#file");
  await file.fill("");
  await file.pressSequentially('{ "ta');
  assert.deepEqual(await proposed(page), ["tasks"]);
  await page.keyboard.press("ArrowDown");
  const chosen = await file.getAttribute("aria-activedescendant");
  assert.equal(await page.locator(`#${chosen}`).getAttribute("aria-selected"), "true");
  await page.keyboard.press("Enter");
  assert.equal(await file.inputValue(), '{ "tasks": ');
  await file.pressSequentially('{ "a": { "pol');
  await page.locator("#file-proposals [role=option]").click();
  assert.ok((await proposed(page)).includes("SCHED_FIFO"), "the values follow the key");
  await file.pressSequentially('"SCHED_F');
  assert.deepEqual(await proposed(page), ["SCHED_FIFO"]);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await file.pressSequentially(', "loop": 1, ');
  assert.deepEqual(await proposed(page), [], "nothing is proposed unasked");
  await page.keyboard.press("Control+Space");
  const events = await proposed(page);
  assert.ok(events.includes("run") && events.includes("sleep") && !events.includes("tasks"));
  assert.ok(!events.includes("policy"), "a key that is there is not proposed again");
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.locator("#file-proposals [aria-selected=true]").count(), 1);
  await page.keyboard.press("Escape");
  assert.equal(await page.evaluate(() => document.activeElement.id), "file");
  assert.equal(await page.locator("#file-proposals").isVisible(), false);
  await after(page, () => file.pressSequentially('"run": "5ms" } } }'));
  assert.match(await text(page, "#file-hint"), /^$/);
  assert.equal(await text(page, "#file-problem"), "");
  assert.match(await text(page, "#status"), /^4 of 4 runs/);
  await close(page);
});

test("inside a comment, a name and a time nothing is proposed", async () => {
  const page = await open();
  const places = ['{ // "ta|', '{ "tasks": { "ru|', '{ "tasks": { "a": { "run": "5|" } } }', "|"];
  const found = await page.evaluate(
    (texts) =>
      texts.map((given) => {
        const at = given.indexOf("|");
        return proposals(given.replace("|", ""), at).items.length;
      }),
    places,
  );
  assert.deepEqual(found, [0, 0, 0, 0]);
  const hint = await page.evaluate(() => proposals('{ "tasks": { "a": { "run": "5', 29).hint);
  assert.equal(hint, "Uses this much CPU time.");
  await close(page);
});

test("a click on a block explains why its task was picked", async () => {
  const page = await open(WIDE);
  await choose(page, [["srtf", {}]]);
  const plot = page.locator("#timeline .plot");
  await plot.focus();
  await page.keyboard.press("ArrowDown");
  await page.locator("#why-after").click();
  await page.waitForFunction(() =>
    /1\.000000/.test(document.querySelector("#why-text h3").textContent),
  );
  assert.match(await text(page, "#why-text"), /burst_left/);
  assert.match(await text(page, "#why-text tr.chosen"), /→ B/);
  await close(page);
});

test("zooming moves timeline and queue together", async () => {
  const page = await open(WIDE);
  await page.locator("#timeline .plot").focus();
  await page.keyboard.press("+");
  await nextFrame(page);
  const { from, to, end } = await page.evaluate(() => schedlab.figures.get("timeline"));
  assert.ok(to - from < end * 0.6);
  await page.locator("#queue-plot").focus();
  await page.keyboard.press("ArrowRight");
  assert.match(await text(page, "#queue-readout"), /tasks waiting: fcfs: \d, srtf: \d/);
  await close(page);
});

test("pictures and data can be taken away", async () => {
  const page = await open();
  const take = async (id) => {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.locator("#" + id).click(),
    ]);
    return readFile(await download.path());
  };
  const svg = (await take("save-svg")).toString();
  assert.match(svg, /^<svg xmlns/);
  assert.ok((svg.match(/<rect/g) || []).length > 30 && svg.includes(">linux-6.12<"), "it is drawn");
  const isXml = await page.evaluate(
    (content) =>
      !new DOMParser().parseFromString(content, "image/svg+xml").querySelector("parsererror"),
    svg,
  );
  assert.ok(isXml);
  const png = await take("save-png");
  assert.equal(png.subarray(1, 4).toString(), "PNG");
  assert.ok(png.length > 20_000, `${png.length} bytes`);
  const rows = (await take("save-csv")).toString().trim().split("\n");
  assert.ok(rows.length > 20 && rows[0].startsWith("scheduler,lane,cpu"));
  const workload = JSON.parse(await take("save-workload"));
  assert.deepEqual(Object.keys(workload.tasks), ["A", "B", "C", "D", "E"]);
  await close(page);
});

test("nobody is left out: axe finds nothing on a wide screen and on a phone", async () => {
  for (const [options, name] of [[WIDE, ""], [PHONE, "playground-phone"]]) {
    for (const colorScheme of ["light", "dark"]) {
      const page = await open({ ...options, colorScheme });
      await choose(page, [["rr", {}], ["linux-6.12", {}], ["policy", {}]]);
      assert.deepEqual(await violations(page), [], `${name} ${colorScheme}`);
      assert.deepEqual(await tooWide(page), []);
      await close(page, colorScheme === "light" ? name : "");
    }
  }
});
