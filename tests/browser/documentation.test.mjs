// SPDX-License-Identifier: MIT OR Apache-2.0
// Opens the documentation of the site by file:// in headless Chromium: every page, its links and
// pictures, the search.
//
// Environment: CHROMIUM (browser), SITE (folder that `cargo xtask site` has built), SCREENSHOTS
// (optional folder for pictures of the pages). tests/browser/run.sh sets the first two.

import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import * as common from "./common.mjs";
import { DESKTOP, PHONE, close, tooWide, violations } from "./common.mjs";

const site = process.env.SITE || "";

function open(name, options = DESKTOP) {
  return common.open(path.join(site, name), options);
}

test("every page has a title and its pictures, and its links lead to places", async () => {
  const all = await readdir(site, { recursive: true });
  const names = all.filter((name) => name.endsWith(".html"));
  assert.ok(names.length > 40, `${names.length} pages`);
  const page = await open("index.html");
  const ids = new Map();
  const links = [];
  for (const name of names) {
    const address = pathToFileURL(path.join(site, name)).href;
    await page.goto(address, { waitUntil: "load" });
    const found = await page.evaluate(() => ({
      ids: [...document.querySelectorAll("[id]")].map((one) => one.id),
      links: [...document.querySelectorAll("main a[href], header a[href]")].map((a) => a.href),
      broken: [...document.images].filter((one) => !one.naturalWidth).map((one) => one.src),
      heads: document.querySelectorAll("h1").length,
    }));
    assert.deepEqual(found.broken, [], name);
    assert.equal(found.heads, 1, name);
    assert.notEqual(await page.title(), "", name);
    ids.set(address, new Set(found.ids));
    links.push(...found.links.map((link) => [name, link]));
  }
  const dead = links.filter(([, link]) => {
    const [address, fragment] = link.split("#");
    if (!address.startsWith("file:") || !address.endsWith(".html")) return false;
    const known = ids.get(address);
    const isState = /(playground|exercises)\.html$/.test(address);
    return !known || (fragment && !isState && !known.has(decodeURIComponent(fragment)));
  });
  assert.deepEqual(dead, []);
  await close(page);
});

test("the search finds a heading first, and its link leads there", async () => {
  const page = await open("docs/index.html");
  await page.locator("#words").fill("write a policy javascript");
  assert.match(await page.locator("#found").innerText(), /places? found/);
  const first = page.locator("#places a").first();
  assert.match(await first.innerText(), /playground: Write a policy in JavaScript/i);
  await first.click();
  await page.waitForURL(/guide\/playground\.html#write-a-policy-in-javascript$/);
  await page.locator("#words").fill("zzzz");
  assert.equal(await page.locator("#found").innerText(), "Nothing found.");
  await close(page, "documentation");
});

test("the gallery shows a picture of each report and leads to it", async () => {
  for (const options of [DESKTOP, PHONE]) {
    const page = await open("docs/gallery.html", options);
    const own = page.url();
    const found = await page.evaluate(() => ({
      commands: [...document.querySelectorAll("main pre")].map((one) => one.innerText.trim()),
      pictures: [...document.querySelectorAll("main a img")].map((one) => one.clientWidth),
      reports: [...document.querySelectorAll("main a[href^='gallery/']")].map((one) => one.href),
    }));
    assert.ok(found.commands.length >= 7, `${found.commands.length} commands`);
    assert.ok(found.commands.every((text) => text.startsWith("schedlab ")));
    assert.ok(found.pictures.length >= 5 && found.pictures.every((width) => width > 200));
    assert.deepEqual(await tooWide(page), []);
    const reports = new Set(found.reports);
    assert.equal(reports.size, found.commands.length);
    for (const address of reports) {
      await page.goto(address, { waitUntil: "load" });
      assert.ok(await page.locator("h1").innerText());
      assert.ok((await page.locator("svg, canvas, table").count()) > 0, address);
    }
    await page.goto(own, { waitUntil: "load" });
    await close(page, `gallery-${options === PHONE ? "phone" : "wide"}`);
  }
});

test("axe finds nothing on a wide screen and on a phone", async () => {
  for (const options of [{ viewport: { width: 1400, height: 900 } }, PHONE]) {
    for (const name of ["index.html", "docs/index.html", "docs/guide/playground.html",
      "docs/gallery.html", "docs/reference/schedulers-textbook.html"]) {
      const page = await open(name, options);
      assert.deepEqual(await violations(page), [], name);
      assert.deepEqual(await tooWide(page), [], name);
      await close(page);
    }
  }
});
