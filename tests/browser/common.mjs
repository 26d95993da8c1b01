// SPDX-License-Identifier: MIT OR Apache-2.0
// What the browser tests share: one headless Chromium, pages opened by file:// that note errors and
// requests, and the accessibility check.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { after, before } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
export const DESKTOP = { viewport: { width: 1280, height: 900 } };
export const PHONE = {
  viewport: { width: 390, height: 844 },
  deviceScaleFactor: 2,
  isMobile: true,
  hasTouch: true,
};

let browser;

before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS });
});

after(async () => {
  await browser?.close();
});

/** A page with the file, all figures drawn; collects errors and requests. */
export async function open(file, options = DESKTOP, fragment = "") {
  assert.ok(file, "no file to open; run tests/browser/run.sh");
  const context = await browser.newContext({ acceptDownloads: true, ...options });
  const page = await context.newPage();
  page.problems = [];
  page.requests = [];
  page.on("console", (message) => {
    // The advice on reading pixels is about this test, not about the report.
    if (/willReadFrequently/.test(message.text())) return;
    if (["error", "warning"].includes(message.type())) page.problems.push(message.text());
  });
  page.on("pageerror", (error) => page.problems.push(error.message));
  page.on("dialog", (dialog) => {
    page.problems.push("dialog: " + dialog.message());
    dialog.dismiss();
  });
  page.on("request", (request) => page.requests.push(request.url()));
  const begun = performance.now();
  await page.goto(pathToFileURL(file).href + fragment, { waitUntil: "domcontentloaded" });
  await nextFrame(page);
  page.shownMs = performance.now() - begun;
  await page.evaluate(() => window.schedlab && window.schedlab.ready);
  await nextFrame(page);
  page.openMs = performance.now() - begun;
  return page;
}

/** Ends a test: the console must be empty. Writes a picture if `name` and SCREENSHOTS are given. */
export async function close(page, name) {
  if (process.env.SCREENSHOTS && name) {
    const file = path.join(process.env.SCREENSHOTS, name + ".png");
    await page.screenshot({ path: file, fullPage: true });
  }
  assert.deepEqual(page.problems, [], "the console stays empty");
  await page.context().close();
}

export function nextFrame(page) {
  const twice = () =>
    new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return page.evaluate(twice);
}

/** Opens everything that is folded up, also what that holds; of data tables only the first. */
export async function openAll(page) {
  await page.evaluate(async () => {
    const closed = "details:not([open]):not(figure ~ figure .data-table)";
    for (let left; (left = document.querySelectorAll(closed)).length; ) {
      for (const details of left) {
        await openFold(details);
        details.open = true;
      }
    }
  });
  await nextFrame(page);
}

/**
 * What is wider than the screen, the page first. Not compared with `innerWidth`: where a page is
 * too wide, a phone zooms out, and `innerWidth` grows with the page.
 */
export function tooWide(page) {
  return page.evaluate(() => {
    const root = document.documentElement;
    const page = root.scrollWidth - root.clientWidth;
    if (page <= 0) return [];
    const scrolls = (element) =>
      element !== document.body && getComputedStyle(element).overflowX !== "visible";
    const found = [`the page: ${page} pixels`];
    const walk = (element) => {
      const over = element.getBoundingClientRect().right - root.clientWidth;
      if (over > 0.5) {
        const name = [element.localName, ...element.classList].join(".");
        found.push(`${name}: ${over.toFixed(0)} pixels, ${element.textContent.slice(0, 40)}`);
      }
      if (!scrolls(element)) [...element.children].forEach(walk);
    };
    walk(document.body);
    return found.slice(0, 9);
  });
}

const axe = await readFile(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

/** Opens the first of each kind of what is folded up: the others are alike. */
export async function openFirsts(page) {
  await page.evaluate(async () => {
    const seen = new Set();
    for (let left = true; left; ) {
      left = false;
      for (const details of document.querySelectorAll("details")) {
        const kind = details.className + (details.closest(".warnings") ? " of warnings" : "");
        if (seen.has(kind)) continue;
        seen.add(kind);
        await openFold(details);
        details.open = left = true;
      }
    }
  });
  await page.waitForTimeout(300);
}

/** Of many rows and panels that are alike, those after the first need no check. */
const ALIKE = ["tbody tr:nth-child(n+5)", ".picture > .panel:nth-child(n+3)", "li:nth-child(n+8)"];

/** What axe-core finds that is serious or critical: rule, number of places, the first of them. */
export async function violations(page, rules) {
  await page.evaluate(axe);
  const { violations: found } = await page.evaluate(
    ([exclude, only]) =>
      window.axe.run(
        { include: [["html"]], exclude: exclude.map((selector) => [selector]) },
        // Pages allow no request, so axe must not fetch their style sheets again.
        { preload: false, resultTypes: ["violations"], ...(only && { runOnly: only }) },
      ),
    [ALIKE, rules],
  );
  const bad = found.filter(({ impact }) => ["serious", "critical"].includes(impact));
  return bad.map(({ id, nodes }) => `${id}: ${nodes.length} times, ${nodes[0].html}`);
}
