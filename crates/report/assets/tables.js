// SPDX-License-Identifier: MIT OR Apache-2.0
// Tables: sorting by a click on a head, rows that are shown on demand, data tables of figures.

/** The value a cell is sorted by: its number, else its text. */
function cellKey(row, column) {
  const cell = row.cells[column];
  if (!cell) return "";
  if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
  return cell.textContent.trim();
}

/** Numbers by size, texts as people sort them (n2 before n10), cells without value last. */
function compareKeys(a, b, sign) {
  const missing = (key) => key === "" || key === "\u2013";
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return sign * String(a).localeCompare(String(b), "en", { numeric: true });
}

function sortTable(table, column) {
  const heads = table.tHead.rows[0].cells;
  const down = heads[column].getAttribute("aria-sort") === "ascending";
  for (const head of heads) head.removeAttribute("aria-sort");
  heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
  const body = table.tBodies[0];
  const keyed = Array.from(body.rows, (row) => [cellKey(row, column), row]);
  keyed.sort((a, b) => compareKeys(a[0], b[0], down ? -1 : 1));
  body.append(...keyed.map((pair) => pair[1]));
}

/** What a table holds, hidden rows and columns too; times in ns, as the cells carry them. */
function tableData(table) {
  const heads = Array.from(table.tHead.rows[0].cells);
  // A cell carries a time in ns whatever unit its column shows.
  const name = (head) => {
    const unit = head.querySelector(".unit");
    const text = head.textContent.trim();
    if (!unit || unit.textContent === "1/s" || unit.textContent === "%") return text;
    return text.slice(0, -unit.textContent.length).trim() + " ns";
  };
  const same = JSON.parse(table.dataset.same || "[]");
  const rows = Array.from(table.tBodies[0].rows, (row) => [
    ...heads.map((_, column) => {
      const key = cellKey(row, column);
      return key === "\u2013" ? null : key;
    }),
    ...same.map(([, value]) => value),
  ]);
  return { columns: [...heads.map(name), ...same.map(([head]) => head)], rows };
}

/** Puts all rows into a table that shows only the first of them. */
async function showAllRows(table) {
  const whole = table.closest(".long-table");
  const script = whole && whole.querySelector("script.packed");
  if (!script) return;
  const rows = fragment(await unfold(script));
  // Another click may have been quicker.
  if (!script.isConnected) return;
  script.remove();
  whole.querySelector(".more").remove();
  table.tBodies[0].replaceChildren(rows);
}

/** A table that is wider or higher than its place can be scrolled with the keyboard. */
const scrolls = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const place = target.closest(".scroll");
    const isCut =
      place.scrollWidth > place.clientWidth || place.scrollHeight > place.clientHeight;
    if (isCut) place.tabIndex = 0;
    else place.removeAttribute("tabindex");
  }
});

function watchScroll(place) {
  for (const element of [place, ...place.children]) scrolls.observe(element);
}

function setUpTables(root) {
  root.querySelectorAll(".scroll").forEach(watchScroll);
  for (const link of root.querySelectorAll("a.csv-of")) {
    link.addEventListener("click", async (event) => {
      if (link.href.startsWith("blob:")) return;
      event.preventDefault();
      const table = document.getElementById(link.dataset.table);
      await showAllRows(table);
      link.href = URL.createObjectURL(csvBlob(tableData(table)));
      link.click();
    });
  }
  for (const table of root.querySelectorAll("table.sortable")) {
    table.tHead.addEventListener("click", async (event) => {
      const head = event.target.closest("th");
      if (!head) return;
      await showAllRows(table);
      sortTable(table, head.cellIndex);
    });
  }
  for (const button of root.querySelectorAll("button.show-all")) {
    const table = button.closest(".long-table").querySelector("table");
    button.addEventListener("click", () => showAllRows(table));
  }
}

/** Fills a figure's data table with the first rows; CSV holds all of them. */
function fillDataTable(place, table, total) {
  place.textContent = "";
  const body = element("tbody");
  let shown = 0;
  for (const row of table.rows) {
    if (shown++ === TABLE_ROWS_MAX) break;
    const line = element("tr");
    for (const value of row) {
      const number = typeof value === "number";
      const text = value === null ? "\u2013" : number && value % 1 ? significant(value) : value;
      line.append(element("td", number ? { class: "num" } : {}, String(text)));
    }
    body.append(line);
  }
  const head = element("tr");
  for (const name of table.columns) head.append(element("th", { scope: "col" }, name));
  place.append(element("table", {}, element("thead", {}, head), body));
  if (total > TABLE_ROWS_MAX) {
    const text = `The first ${TABLE_ROWS_MAX} of ${total} rows; the CSV file holds all of them.`;
    place.prepend(element("p", { class: "notice" }, text));
  }
  watchScroll(place);
}
