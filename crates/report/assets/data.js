// SPDX-License-Identifier: MIT OR Apache-2.0
// Reading what the report carries, numbers for people, colours, CSV. Loaded first.

/** What the figures share; also what the browser tests look at. */
const schedlab = (window.schedlab = { figures: new Map(), framesDrawn: 0, frameMs: [] });

const NS_PER = [
  ["s", 1e9],
  ["ms", 1e6],
  ["\u00b5s", 1e3],
  ["ns", 1],
];
const COLOUR_COUNT = 8;
const TABLE_ROWS_MAX = 500;

/** Base64 of zlib of bytes -> the bytes. */
async function inflate(text) {
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The text of a script element, which may be packed. */
async function unfold(script) {
  if (!script.classList.contains("packed")) return script.textContent;
  return new TextDecoder().decode(await inflate(script.textContent));
}

/** HTML of the page as nodes. */
function fragment(html) {
  const made = document.createElement("template");
  made.innerHTML = html;
  return made.content;
}

/** Base64 of zlib of LEB128 numbers -> function that gives the next number. */
async function unpack(text) {
  const bytes = await inflate(text);
  let at = 0;
  return function next() {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = bytes[at++];
      // Multiplication, not shifts: times in ns need more than 32 bits.
      value += (byte & 0x7f) * scale;
      if (byte < 0x80 || at >= bytes.length) return value;
      scale *= 128;
    }
  };
}

/** The greatest unit in which `ns` is at least 1. */
function unitFor(ns) {
  return NS_PER.find((unit) => ns >= unit[1]) || NS_PER[3];
}

/** Three significant digits, without exponent. */
function significant(value) {
  if (value === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  const digits = Math.min(9, Math.max(0, 2 - magnitude));
  return value.toFixed(digits).replace("-", "\u2212");
}

/** A duration with its unit. */
function duration(ns) {
  const unit = unitFor(ns);
  return significant(ns / unit[1]) + "\u00a0" + unit[0];
}

/** A style sheet variable, such as `--ink`. */
function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Colours of the page as it is shown now: light, dark or print. */
function pageColours() {
  const lines = [];
  for (let i = 0; i < COLOUR_COUNT; i++) lines.push(cssColour("--c" + i));
  return {
    lines,
    ink: cssColour("--ink"),
    soft: cssColour("--soft"),
    grid: cssColour("--grid"),
    paper: cssColour("--paper"),
    wait: cssColour("--wait"),
  };
}

/** An element with attributes and text children. */
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** One CSV cell. A text that a spreadsheet would run as a formula gets a quote in front. */
function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? "'" + value : String(value);
  return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
}

/** `{columns, rows}` as a file; `rows` may be any iterable of arrays. */
function csvBlob(table) {
  const parts = [table.columns.map(csvCell).join(",") + "\n"];
  let chunk = [];
  for (const row of table.rows) {
    chunk.push(row.map(csvCell).join(","));
    if (chunk.length === 10000) {
      parts.push(chunk.join("\n") + "\n");
      chunk = [];
    }
  }
  if (chunk.length) parts.push(chunk.join("\n") + "\n");
  return new Blob(parts, { type: "text/csv;charset=utf-8" });
}
