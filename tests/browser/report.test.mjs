// SPDX-License-Identifier: MIT OR Apache-2.0
// Opens a report of synthetic results by file:// in headless Chromium and uses it as a reader
// would. What is asserted is what is seen and done; how long frames take is printed only, because
// a shared machine has no clock one could gate on.
//
// Environment: CHROMIUM (browser), REPORT_HTML and REPORT_LONG_HTML (reports written by the example
// `synthetic`, the second with --long), SCREENSHOTS (optional folder for pictures of the pages).
// tests/browser/run.sh sets the first three.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import * as common from "./common.mjs";
import { DESKTOP, PHONE, close, nextFrame, violations } from "./common.mjs";

const report = process.env.REPORT_HTML;
const longReport = process.env.REPORT_LONG_HTML;

function open(options = DESKTOP, file = report) {
  return common.open(file, options);
}

const BIG = "big-b-timeline-b-timeline";

/** The timeline's window in ns and the number of frames drawn so far. */
function view(page, id = BIG) {
  return page.evaluate((figure) => {
    const { from, to, end } = schedlab.figures.get(figure);
    return { from, to, end, frames: schedlab.framesDrawn };
  }, id);
}

/** Scrolls so that the element's top is at the top of the screen, at once. */
function bring(locator) {
  return locator.evaluate((e) => e.scrollIntoView({ block: "start", behavior: "instant" }));
}

/** Waits until a scroll that goes on over several frames has ended. */
function scrolled(page) {
  return page.evaluate(async () => {
    const frame = () => new Promise(requestAnimationFrame);
    for (let same = 0, last = NaN; same < 5; ) {
      same = scrollY === last ? same + 1 : 0;
      last = scrollY;
      await frame();
    }
  });
}

/** How many pixels of the canvas differ from the background, and how many colours they have. */
function ink(page, selector) {
  return page.evaluate((wanted) => {
    const canvas = document.querySelector(wanted);
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const seen = new Map();
    for (let i = 0; i < data.length; i += 4) {
      if (data[i + 3] < 200) continue;
      const key = (data[i] << 16) | (data[i + 1] << 8) | data[i + 2];
      seen.set(key, (seen.get(key) || 0) + 1);
    }
    const strong = [...seen].filter((entry) => entry[1] > 200).length;
    return { pixels: [...seen.values()].reduce((a, b) => a + b, 0), strong };
  }, selector);
}

test("it opens from a file without an error, a request or a script of the data", async () => {
  const page = await open();
  const own = pathToFileURL(report).href;
  const foreign = page.requests.filter((url) => url !== own && !/^(blob|data):/.test(url));
  assert.deepEqual(foreign, []);
  assert.equal(await page.locator("img").count(), 0, "no element came out of a hostile name");
  const name = "</script><img src=x onerror=alert(1)>";
  const names = await page.evaluate(
    (id) => schedlab.figures.get(id).panels[0].tasks.map((task) => task.name),
    BIG,
  );
  assert.ok(names.includes(name), "the hostile name is shown as it is");
  const made = await page.evaluate(() => schedlab.figures.size);
  assert.equal(made, await page.locator("figure.fig").count(), "every figure was drawn");
  await close(page, "desktop");
});

test("nothing can be loaded even if something tried", async () => {
  const page = await open();
  const blocked = await page.evaluate(async () => {
    const seen = [];
    document.addEventListener("securitypolicyviolation", (event) =>
      seen.push(event.violatedDirective),
    );
    await fetch("https://example.invalid/").catch(() => {});
    await new Promise((done) => setTimeout(done, 50));
    return seen;
  });
  assert.deepEqual(blocked, ["connect-src"]);
  page.problems = [];
  await close(page);
});

test("every figure has a text alternative, a caption, a data table and a CSV", async () => {
  const page = await open();
  const figures = await page.evaluate(() =>
    [...document.querySelectorAll("figure.fig")].map((figure) => ({
      id: figure.id,
      role: figure.querySelector(".plot").getAttribute("role"),
      alternative: figure.querySelector(".plot").getAttribute("aria-label"),
      caption: figure.querySelector("figcaption").textContent.trim(),
      focus: figure.querySelector(".plot").tabIndex,
    })),
  );
  assert.ok(figures.length >= 12);
  for (const figure of figures) {
    assert.equal(figure.role, "img", figure.id);
    assert.ok(figure.alternative.length > 40, figure.id);
    assert.ok(figure.caption.length > 80, figure.id);
    assert.equal(figure.focus, 0, figure.id);
  }
  for (const kind of ["timeline", "progress", "curves", "boxes"]) {
    const figure = page.locator(`figure.fig-${kind}`).first();
    await figure.locator("details.data-table summary").click();
    await figure.locator("details.data-table tbody tr").first().waitFor();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      figure.locator("a.csv").click(),
    ]);
    const lines = (await readFile(await download.path(), "utf8")).trim().split("\n");
    assert.ok(lines.length > 1, kind);
    const columns = lines[0].split(",").length;
    assert.equal(lines[1].split(",").length, columns, kind);
  }
  await close(page);
});

test("the CSV of the long timeline holds every slice and defuses the hostile name", async () => {
  const page = await open();
  const figure = page.locator("#" + BIG);
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    figure.locator("a.csv").click(),
  ]);
  const lines = (await readFile(await download.path(), "utf8")).trim().split("\n");
  const { count, packed } = await page.evaluate((id) => {
    const { data } = schedlab.figures.get(id);
    return { count: data.panels[0].count, packed: data.panels[0].data.length };
  }, BIG);
  // Two doubles, a 32-bit, a 16-bit and an 8-bit number a slice, in base64.
  const plain = Math.ceil((count * 23 * 4) / 3);
  console.log(`${count} slices: ${packed} bytes in the page, ${plain} as plain typed arrays`);
  assert.ok(count >= 100_000, `${count} slices`);
  assert.equal(lines.length, count + 1);
  await figure.locator("details.data-table summary").click();
  await figure.locator("details.data-table .notice").waitFor();
  assert.equal(await figure.locator("details.data-table tbody tr").count(), 500);
  await close(page);
});

test("the timeline draws its lanes", async () => {
  const page = await open();
  for (const id of ["s0-1cpu-4-timeline", BIG]) {
    const { pixels, strong } = await ink(page, `#${id} canvas`);
    assert.ok(pixels > 5_000, `${id}: ${pixels} pixels`);
    assert.ok(strong >= 4, `${id}: ${strong} colours`);
  }
  // Who has the CPU in the picture is who has it in the data.
  const agree = await page.evaluate((id) => {
    const timeline = schedlab.figures.get(id);
    const panel = timeline.panels[0];
    const row = panel.cpuRows[0];
    const colours = pageColours().lines;
    const ctx = timeline.canvas.getContext("2d");
    let right = 0;
    for (let i = 0; i < row.start.length; i++) {
      const middle = (row.start[i] + row.end[i]) / 2;
      const x =
        timeline.left +
        ((middle - timeline.from) / (timeline.to - timeline.from)) * timeline.plotWidth;
      const y = row.y + row.height - 2;
      const [r, g, b] = ctx.getImageData(x * timeline.dpr, y * timeline.dpr, 1, 1).data;
      const hex = "#" + [r, g, b].map((v) => v.toString(16).padStart(2, "0")).join("");
      if (hex === colours[panel.task[row.members[i]] % colours.length]) right++;
    }
    return [right, row.start.length];
  }, "s0-1cpu-4-timeline");
  assert.equal(agree[0], agree[1]);
  await close(page);
});

test("the timeline zooms and moves by keys, buttons, wheel and drag", async () => {
  const page = await open();
  const plot = page.locator(`#${BIG} .plot`);
  await bring(plot);
  const whole = await view(page);
  assert.deepEqual([whole.from, whole.to], [0, whole.end]);
  await plot.focus();
  await page.keyboard.press("+");
  await page.keyboard.press("+");
  await nextFrame(page);
  const zoomed = await view(page);
  assert.equal(Math.round(whole.end / (zoomed.to - zoomed.from)), 4);
  assert.ok(zoomed.frames > whole.frames, "a frame was drawn");
  await page.keyboard.press("ArrowRight");
  assert.ok((await view(page)).from > zoomed.from);
  await page.keyboard.press("0");
  assert.equal((await view(page)).to, whole.end);

  await page.locator(`#${BIG} .toolbar button[aria-label="Zoom in"]`).click();
  assert.equal(Math.round(whole.end / ((await view(page)).to - (await view(page)).from)), 2);

  const box = await plot.locator("canvas").boundingBox();
  const at = [box.x + box.width / 2, box.y + 40];
  await page.mouse.move(...at);
  const before = await view(page);
  await page.mouse.down();
  await page.mouse.move(at[0] + 120, at[1], { steps: 4 });
  await page.mouse.up();
  assert.ok(
    (await view(page)).from < before.from,
    "dragging to the right shows what was earlier",
  );

  // Without focus or Ctrl the wheel scrolls the page; with Ctrl it zooms.
  await page.evaluate(() => document.activeElement.blur());
  const still = await view(page);
  const top = await page.evaluate(() => scrollY);
  await page.mouse.wheel(0, -200);
  await page.waitForFunction((was) => scrollY < was, top);
  await scrolled(page);
  assert.deepEqual([(await view(page)).from, (await view(page)).to], [still.from, still.to]);
  await bring(plot);
  const again = await plot.locator("canvas").boundingBox();
  await page.mouse.move(again.x + again.width / 2, again.y + 40);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -200);
  // The wheel's event arrives when the browser has time for it.
  await page.waitForFunction(
    ([figure, span]) => {
      const { from, to } = schedlab.figures.get(figure);
      return to - from < span;
    },
    [BIG, still.to - still.from],
  );
  await page.keyboard.up("Control");
  await close(page);
});

test("a slice tells its details to the pointer and to the keyboard", async () => {
  const page = await open();
  const id = "s0-1cpu-4-timeline";
  const plot = page.locator(`#${id} .plot`);
  await bring(plot);
  await plot.focus();
  await page.keyboard.press("ArrowDown");
  const first = await page.locator(`#${id}-readout`).textContent();
  assert.match(first, /hog-\d \(task \d\) on CPU 0: 0\.\d+ to .* then (preempted|exited)\./);
  await page.keyboard.press("n");
  assert.notEqual(await page.locator(`#${id}-readout`).textContent(), first);
  const box = await plot.locator("canvas").boundingBox();
  const lane = await page.evaluate((figure) => schedlab.figures.get(figure).rows[0].y + 5, id);
  await page.mouse.move(box.x + box.width / 2, box.y + lane);
  assert.match(await plot.locator(".tip").textContent(), /on CPU 0/);
  await close(page);
});

test("a tap shows a slice's details and leaves them", async () => {
  const page = await open(PHONE);
  const id = "s0-1cpu-4-timeline";
  const plot = page.locator(`#${id} .plot`);
  await bring(plot);
  const lane = await page.evaluate((figure) => schedlab.figures.get(figure).rows[0].y + 5, id);
  const box = await plot.locator("canvas").boundingBox();
  await page.touchscreen.tap(box.x + 200, box.y + lane);
  await nextFrame(page);
  assert.match(await plot.locator(".tip:visible").textContent(), /on CPU 0/);
  assert.match(await page.locator(`#${id}-readout`).textContent(), /on CPU 0/);
  await close(page);
});

test("two fingers zoom, and what was under them stays there", async () => {
  const page = await open(PHONE);
  const plot = page.locator(`#${BIG} .plot`);
  await bring(plot);
  const box = await plot.locator("canvas").boundingBox();
  const [y, a, b] = [box.y + 60, box.x + 160, box.x + 240];
  const before = await view(page);
  const client = await page.context().newCDPSession(page);
  const touch = (type, ...xs) =>
    client.send("Input.dispatchTouchEvent", {
      type,
      touchPoints: xs.map((x, i) => ({ x, y, id: i })),
    });
  await touch("touchStart", a, b);
  for (let step = 1; step <= 8; step++) await touch("touchMove", a - 5 * step, b + 5 * step);
  await touch("touchEnd");
  await nextFrame(page);
  const now = await view(page);
  const factor = (before.to - before.from) / (now.to - now.from);
  assert.ok(factor > 1.7 && factor < 2.3, `zoomed ${factor} times; 80 to 160 pixels is twice`);
  await close(page);
});

test("at 100,000 slices every frame asked for is drawn", async () => {
  const page = await open();
  await bring(page.locator(`#${BIG} .plot`));
  const measured = await page.evaluate(async (id) => {
    const timeline = schedlab.figures.get(id);
    const frames = 60;
    const [drawn, begun] = [schedlab.framesDrawn, performance.now()];
    const cost = { whole: [], zoomed: [] };
    for (let i = 0; i < frames; i++) {
      const span = timeline.end / (i < frames / 2 ? 1 : 50);
      timeline.show(
        ((timeline.end - span) * i) / frames,
        ((timeline.end - span) * i) / frames + span,
      );
      await new Promise(requestAnimationFrame);
      await new Promise((done) => setTimeout(done));
      cost[i < frames / 2 ? "whole" : "zoomed"].push(timeline.frameMs);
    }
    const middle = (list) => list.sort((a, b) => a - b)[list.length >> 1];
    return {
      drawn: schedlab.framesDrawn - drawn,
      frames,
      perSecond: (frames * 1000) / (performance.now() - begun),
      whole: middle(cost.whole),
      zoomed: middle(cost.zoomed),
      slices: timeline.panels[0].count,
    };
  }, BIG);
  console.log(
    `${measured.slices} slices: median frame ${measured.whole.toFixed(1)} ms with all of them in ` +
      `view, ${measured.zoomed.toFixed(1)} ms zoomed 50 times; ` +
      `${measured.perSecond.toFixed(0)} frames/s`,
  );
  // Another timeline may be drawn meanwhile, when it comes into view.
  assert.ok(measured.drawn >= measured.frames, `${measured.drawn} of ${measured.frames} frames`);
  await close(page);
});

test("a million slices open and can be looked at", async () => {
  assert.ok(longReport, "REPORT_LONG_HTML is not set; run tests/browser/run.sh");
  const small = await open();
  await small.context().close();
  const page = await open(DESKTOP, longReport);
  const plot = page.locator(`#${BIG} .plot`);
  await bring(plot);
  const count = await page.evaluate((id) => schedlab.figures.get(id).panels[0].count, BIG);
  assert.ok(count >= 1_000_000, `${count} slices`);
  assert.ok((await ink(page, `#${BIG} canvas`)).pixels > 5_000, "the lanes are drawn");
  await plot.focus();
  const whole = await view(page);
  for (let i = 0; i < 10; i++) await page.keyboard.press("+");
  await nextFrame(page);
  const zoomed = await view(page);
  assert.ok(zoomed.frames > whole.frames && zoomed.to - zoomed.from < whole.end / 500);
  await page.keyboard.press("ArrowDown");
  assert.match(await page.locator(`#${BIG}-readout`).textContent(), / on CPU \d: /);
  console.log(
    `the report with 100,000 slices opens in ${small.openMs.toFixed(0)} ms, ` +
      `${count} slices in ${page.openMs.toFixed(0)} ms`,
  );
  await close(page, "long");
});

test("tables sort by number and by text, up and down", async () => {
  const page = await open();
  const column = (index) =>
    page.evaluate(
      (i) =>
        [...document.querySelectorAll("#summary-table tbody tr")].map(
          (row) => row.cells[i].dataset.v ?? row.cells[i].textContent,
        ),
      index,
    );
  // A long table is unpacked first, which takes its time.
  const sorted = (direction) =>
    page.locator(`#summary-table th[aria-sort=${direction}]`).waitFor({ state: "attached" });
  const heads = await page.locator("#summary-table thead th").allTextContents();
  const makespan = heads.findIndex((text) => text.startsWith("makespan"));
  await page.locator("#summary-table thead th").nth(makespan).locator("button").click();
  await sorted("ascending");
  const up = (await column(makespan)).map(Number);
  assert.deepEqual(
    up,
    [...up].sort((a, b) => a - b),
  );
  assert.ok(new Set(up).size > 10);
  await page.locator("#summary-table thead th").nth(makespan).locator("button").press("Enter");
  await sorted("descending");
  assert.deepEqual((await column(makespan)).map(Number), up.reverse());
  await page.locator("#summary-table thead th").first().locator("button").click();
  await sorted("ascending");
  const names = await column(0);
  assert.deepEqual(
    names,
    [...names].sort((a, b) => a.localeCompare(b, "en", { numeric: true })),
  );
  await close(page);
});

test("the tables of the page go out as CSV with every row", async () => {
  const page = await open();
  for (const id of ["summary-table", "agreement-table"]) {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.locator(`a.csv-of[data-table="${id}"]`).click(),
    ]);
    const lines = (await readFile(await download.path(), "utf8")).trim().split("\n");
    assert.equal(lines.length, 1 + (await page.locator(`#${id} tbody tr`).count()));
  }
  const heads = await page.evaluate(
    () => tableData(document.getElementById("summary-table")).columns,
  );
  assert.ok(heads.includes("makespan ns") && heads.includes("throughput 1/s"), heads.join());
  await close(page);
});

test("a long table shows the greatest n at first and all rows on demand", async () => {
  const page = await open();
  const rows = () => page.locator("#summary-table tbody tr").count();
  const few = await rows();
  const button = page.locator("#overview button.show-all");
  const all = Number(/(\d+)/.exec(await button.textContent())[1]);
  assert.ok(all > few && few > 0, `${few} of ${all}`);
  await button.click();
  await button.waitFor({ state: "detached" });
  assert.equal(await rows(), all);
  await close(page);
});

test("axe finds nothing serious", async () => {
  for (const options of [DESKTOP, PHONE]) {
    const page = await open(options);
    await common.openFirsts(page);
    assert.deepEqual(await violations(page), []);
    await close(page);
  }
});

test("curves hide a line by its legend and read values by keys", async () => {
  const page = await open();
  const figure = page.locator("#s1-2cpu-turnaround-n");
  await bring(figure);
  await figure.locator(".plot").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  const readout = figure.locator(".readout");
  assert.match(await readout.textContent(), /^n = 2, 2\sCPUs \(ms\): .*OTHER measured/);
  const line = figure.locator('.wide g[data-line="0"]:visible');
  assert.equal(await line.count(), 2, "the line and its name at the end");
  const button = figure.locator(".legend button").first();
  await button.click();
  assert.equal(await button.getAttribute("aria-pressed"), "false");
  assert.equal(await line.count(), 0);
  await button.click();
  assert.equal(await line.count(), 2);
  await close(page);
});

test("the pointer reads values where it is", async () => {
  const page = await open();
  const chart = page.locator("#s1-2cpu-turnaround-n .wide svg");
  await bring(chart);
  const box = await chart.boundingBox();
  const [low, high, left, right] = (await chart.getAttribute("data-x")).split(" ").map(Number);
  const scale = box.width / (await chart.evaluate((svg) => svg.viewBox.baseVal.width));
  const at = (n) => box.x + (left + ((n - low) / (high - low)) * (right - left)) * scale;
  const readout = page.locator("#s1-2cpu-turnaround-n .readout");
  for (const n of [3, 5]) {
    await page.mouse.move(at(n) - 4, box.y + box.height / 2);
    assert.match(await readout.textContent(), new RegExp(`^n = ${n}, `));
    assert.equal(await chart.locator(".cursor").count(), 1);
  }
  await page.mouse.move(0, 0);
  assert.equal(await chart.locator(".cursor").count(), 0);
  const progress = page.locator("#s0-2cpu-4-progress");
  const panel = progress.locator(".wide svg").first();
  await bring(panel);
  await panel.hover();
  assert.match(
    await progress.locator(".readout").textContent(),
    /^[\d.]+ ms, linux-6.12, simulated: hog-0 [\d.]+ %/,
  );
  const panels = await progress.locator(".wide svg").count();
  assert.equal(await progress.locator(".wide .cursor").count(), panels, "cursors are linked");
  await close(page);
});

test("progress panels share their axes", async () => {
  const page = await open();
  const ranges = await page.evaluate(() =>
    [...document.querySelectorAll("#s0-2cpu-4-progress .wide svg")].map((svg) => [
      svg.dataset.x,
      ...Array.from(svg.querySelectorAll("text.end"), (label) => label.textContent),
    ]),
  );
  assert.ok(ranges.length >= 4);
  for (const range of ranges) assert.deepEqual(range, ranges[0]);
  await close(page);
});

test("on a phone nothing is wider than the screen", async () => {
  const page = await open(PHONE);
  assert.deepEqual(await common.tooWide(page), []);
  await common.openFirsts(page);
  assert.deepEqual(await common.tooWide(page), [], "the first of each kind unfolded");
  const { pixels } = await ink(page, "#s0-1cpu-4-timeline canvas");
  assert.ok(pixels > 5_000);
  assert.ok(await page.locator(".picture .narrow svg").first().isVisible());
  assert.ok(!(await page.locator(".picture .wide svg").first().isVisible()));
  await close(page, "phone");
});

test("print shows every figure and no control", async () => {
  const page = await open({ ...DESKTOP, colorScheme: "dark" });
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  await nextFrame(page);
  assert.ok(!(await page.locator(".toolbar").first().isVisible()));
  const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(paper, "rgb(255, 255, 255)", "paper is white even where the screen is dark");
  const warning = page.locator(".warnings > details li").first();
  assert.ok((await warning.boundingBox())?.height > 0, "paper shows what a click would unfold");
  const { pixels } = await ink(page, "figure.fig-timeline canvas");
  assert.ok(pixels > 500, `${pixels} pixels`);
  for (const kind of ["progress", "curves", "boxes"]) {
    assert.ok((await page.locator(`figure.fig-${kind} .picture svg:visible`).count()) > 0, kind);
  }
  const pdf = await page.pdf({ format: "A4" });
  assert.ok(pdf.length > 100_000, `${pdf.length} bytes of PDF`);
  await close(page, "print");
});

test("dark mode keeps text and lines legible", async () => {
  const page = await open({ ...DESKTOP, colorScheme: "dark" });
  const ratios = await page.evaluate(() => {
    const light = (hex) => {
      const part = (at) => {
        const v = parseInt(hex.slice(at, at + 2), 16) / 255;
        return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
      };
      return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
    };
    const contrast = (a, b) => {
      const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
      return (x + 0.05) / (y + 0.05);
    };
    const colours = pageColours();
    return {
      ink: contrast(colours.ink, colours.paper),
      soft: contrast(colours.soft, colours.paper),
      lines: colours.lines.map((line) => contrast(line, colours.paper)),
    };
  });
  assert.ok(ratios.ink >= 7, `text ${ratios.ink}`);
  assert.ok(ratios.soft >= 4.5, `small text ${ratios.soft}`);
  for (const ratio of ratios.lines) assert.ok(ratio >= 3, `line ${ratio}`);
  await close(page, "dark");
});
