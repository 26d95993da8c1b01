// SPDX-License-Identifier: MIT OR Apache-2.0
// The report of a reproduction: an index, and a page for each study. Opens them by file:// as a
// reader would who was sent the folder. How long a page takes to open is printed only.
//
// Environment: CHROMIUM (browser), REPORT_INDEX (index written by the example `synthetic` with
// --studies; REPORT_INDEX of a real reproduction works too), SCREENSHOTS (optional folder).

import assert from "node:assert/strict";
import { readdir, stat } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import * as common from "./common.mjs";
import { DESKTOP, PHONE, close, open, openAll, openFirsts, violations } from "./common.mjs";

const index = process.env.REPORT_INDEX;
const folder = path.dirname(index ?? "");
const stem = path.basename(index ?? "", ".html");
const names = (await readdir(folder)).filter((name) => name.startsWith(stem + "-")).sort();
const pages = names.filter((name) => name.endsWith(".html"));
const studies = pages.map((name) => path.join(folder, name));
const all = [index, ...studies];

/** Where a page is in its window: the top of the element, in pixels. */
const topOf = (locator) => locator.evaluate((element) => element.getBoundingClientRect().top);

test("each page is light, loads nothing and shows its first frame soon", async () => {
  assert.ok(studies.length >= 2, names.join());
  for (const file of all) {
    const { size } = await stat(file);
    assert.ok(size < 1_500_000, `${file} has ${size} bytes`);
    const page = await open(file);
    const own = pathToFileURL(file).href;
    const foreign = page.requests.filter((url) => url !== own && !/^(blob|data):/.test(url));
    assert.deepEqual(foreign, []);
    const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
    assert.ok(nodes < 8000, `${file} has ${nodes} elements`);
    console.log(
      `${path.basename(file)}: ${size} bytes, ${nodes} elements, first frame after ` +
        `${page.shownMs.toFixed(0)} ms, all figures after ${page.openMs.toFixed(0)} ms`,
    );
    await close(page, path.basename(file, ".html"));
  }
});

test("the index leads to each study, and each study back", async () => {
  const page = await open(index);
  for (const file of studies) {
    await page.locator(`table.verdicts a[href="${path.basename(file)}"]`).click();
    await page.waitForURL(pathToFileURL(file).href);
    assert.match(await page.locator("h1").textContent(), /^Study /);
    await page.locator("nav.pages a").first().click();
    await page.waitForURL(pathToFileURL(index).href);
  }
  assert.match(await page.locator("#summary").textContent(), /claims of \d+\sstudies: \d+ hold/);
  await close(page);
});

test("a verdict leads to the claim on its study's page", async () => {
  const page = await open(index);
  const cell = page.locator(".study-card .cell").nth(3);
  const id = new URL(await cell.evaluate((link) => link.href)).hash.slice(1);
  await cell.click();
  await page.waitForURL(/#claim-/);
  await page.evaluate(() => schedlab.ready);
  // The browser scrolls after it has laid the page out.
  const claim = page.locator(`[id="${id}"]`);
  let top = await topOf(claim);
  for (let tries = 0; tries < 50 && !(top >= -1 && top < 900); tries++) {
    await page.waitForTimeout(100);
    top = await topOf(claim);
  }
  assert.ok(top >= -1 && top < 900, `${id} is at ${top}`);
  await close(page);
});

test("findings unfold on the index", async () => {
  const page = await open(index);
  await page.locator(".findings summary").first().click();
  const item = page.locator(".findings li").first();
  await item.waitFor();
  assert.match(await item.textContent(), /\w+-1.*\./s);
  await close(page);
});

test("an experiment unfolds by a click and by a link, and draws its figures", async () => {
  const page = await open(studies[0]);
  const experiment = page.locator(".experiment-of-study").first();
  assert.equal(await experiment.locator("figure").count(), 0, "it is packed");
  await experiment.locator("summary").first().click();
  await experiment.locator("figure.drawn").first().waitFor();
  const link = page.locator("#overview td a").last();
  const id = new URL(await link.evaluate((element) => element.href)).hash.slice(1);
  await link.click();
  const other = page.locator(`[id="${id}"]`);
  await other.locator("figure.drawn, table").first().waitFor();
  assert.equal(await other.evaluate((details) => details.open), true);
  await close(page);
});

test("a long table sorts all its rows and gives all of them as CSV", async () => {
  const page = await open(studies[0]);
  const rows = () => page.locator("#summary-table tbody tr").count();
  const button = page.locator("#overview button.show-all");
  const [few, whole] = [await rows(), Number(/(\d+)/.exec(await button.textContent())[1])];
  assert.ok(few < whole);
  await page.locator("#summary-table thead button").first().click();
  await button.waitFor({ state: "detached" });
  assert.equal(await rows(), whole);
  await close(page);
});

test("on a phone no page scrolls sideways", async () => {
  for (const file of all) {
    const page = await open(file, PHONE);
    assert.deepEqual(await common.tooWide(page), [], file);
    await openAll(page);
    assert.deepEqual(await common.tooWide(page), [], `${file}, all unfolded`);
    await close(page, path.basename(file, ".html") + "-phone");
  }
});

test("axe finds nothing serious on any page", async () => {
  for (const file of all) {
    for (const options of [DESKTOP, PHONE]) {
      const page = await open(file, options);
      await openFirsts(page);
      assert.deepEqual(await violations(page), [], file);
      await close(page);
    }
  }
});

test("text has contrast where the screen is dark", async () => {
  for (const file of all.slice(0, 2)) {
    const page = await open(file, { ...DESKTOP, colorScheme: "dark" });
    assert.deepEqual(await violations(page, ["color-contrast"]), [], file);
    await close(page);
  }
});

test("a study's page prints with its figures and without what is folded up", async () => {
  const page = await open(studies[1]);
  await page.emulateMedia({ media: "print" });
  assert.ok((await page.locator("figure.fig-study .picture svg:visible").count()) > 0);
  assert.ok(!(await page.locator(".appendix").isVisible()));
  assert.ok((await page.pdf({ format: "A4" })).length > 50_000);
  await close(page);
});
