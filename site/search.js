// SPDX-License-Identifier: MIT OR Apache-2.0
// Searches the documentation in the page: all words, headings before texts. `SECTIONS` is added by
// the build.

const FOUND_MAX = 30;
const AROUND_CHARS = 90;

const lower = SECTIONS.map(({ title, heading, text }) => ({
  heading: `${title} ${heading}`.toLowerCase(),
  text: text.toLowerCase(),
}));

/** The sections that have all words, the best first. */
function search(words) {
  const found = [];
  lower.forEach(({ heading, text }, index) => {
    let score = 0;
    for (const word of words) {
      const inHeading = heading.includes(word);
      if (!inHeading && !text.includes(word)) return;
      score += inHeading ? 10 : 1;
      if (inHeading && heading.split(/\W+/).includes(word)) score += 5;
    }
    found.push([score, index]);
  });
  return found.sort((a, b) => b[0] - a[0] || a[1] - b[1]).map(([, index]) => index);
}

/** The text around the first of the words. */
function around(index, words) {
  const { text } = SECTIONS[index];
  const places = words.map((word) => lower[index].text.indexOf(word)).filter((at) => at >= 0);
  const at = Math.max(0, Math.min(...places, text.length) - AROUND_CHARS / 2);
  const part = text.slice(at, at + 2 * AROUND_CHARS);
  return (at > 0 ? "\u2026" : "") + part + (at + part.length < text.length ? "\u2026" : "");
}

function showFound(form, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const places = document.getElementById("places");
  const status = document.getElementById("found");
  places.replaceChildren();
  status.textContent = "";
  if (!words.length) return;
  const found = search(words);
  const count = found.length === 1 ? "1 place" : `${found.length} places`;
  status.textContent = found.length ? `${count} found.` : "Nothing found.";
  for (const index of found.slice(0, FOUND_MAX)) {
    const { page, id, title, heading } = SECTIONS[index];
    const link = document.createElement("a");
    link.href = `${form.dataset.up}docs/${page}${id ? "#" + id : ""}`;
    link.textContent = heading === title ? title : `${title}: ${heading}`;
    const line = document.createElement("p");
    line.textContent = around(index, words);
    const item = document.createElement("li");
    item.append(link, line);
    places.append(item);
  }
}

function setUpSearch() {
  const form = document.getElementById("search");
  const field = document.getElementById("words");
  form.addEventListener("submit", (event) => event.preventDefault());
  field.addEventListener("input", () => showFound(form, field.value));
  for (const place of document.querySelectorAll(".scroll, pre")) place.tabIndex = 0;
}

setUpSearch();
