// SPDX-License-Identifier: MIT OR Apache-2.0
// Starts the figures: those near the screen first, then all others while the browser is idle, so
// that a print finds them drawn. Unpacks what is folded up when it is opened. Redraws on a new
// width, on dark or light, and for paper.

/** A figure that is ready-made in the page: only its table and CSV need code. */
class Picture {
  constructor(data) {
    this.data = data;
  }

  table() {
    return { ...this.data.table, total: this.data.table.rows.length };
  }

  redraw() {}
}

async function makeFigure(figure) {
  const data = JSON.parse(await unfold(figure.querySelector("script.fig-data")));
  const picture = figure.querySelector("script.fig-picture");
  if (picture) picture.replaceWith(fragment(await unfold(picture)));
  switch (figure.dataset.kind) {
    case "timeline":
      return new Timeline(figure, data, await Promise.all(data.panels.map(readPanel)));
    case "progress":
      return progress(figure, data, await Promise.all(data.panels.map(readProgress)));
    case "curves":
      return curves(figure, data);
    default:
      return new Picture(data);
  }
}

/** Draws `figure` once; whoever asks again gets the same promise. */
function start(figure) {
  if (!figure.started) {
    figure.started = makeFigure(figure).then(
      (made) => {
        schedlab.figures.set(figure.id, made);
        figure.classList.add("drawn");
        return made;
      },
      (error) => {
        const cause = `This figure could not be drawn (${error.message}).`;
        const text = cause + " Its data is in the page's source.";
        figure.querySelector(".plot").replaceChildren(element("p", { class: "notice" }, text));
        throw error;
      },
    );
  }
  return figure.started;
}

function setUpFigure(figure) {
  figure.querySelector("a.csv").addEventListener("click", async (event) => {
    const link = event.currentTarget;
    if (link.href.startsWith("blob:")) return;
    event.preventDefault();
    link.href = URL.createObjectURL(csvBlob((await start(figure)).table()));
    link.click();
  });
  const details = figure.querySelector("details.data-table");
  details.addEventListener("toggle", async () => {
    if (!details.open) return;
    const table = (await start(figure)).table();
    fillDataTable(details.querySelector(".scroll"), table, table.total);
  });
}

function redrawAll() {
  for (const made of schedlab.figures.values()) made.redraw();
}

function setUpRedraw() {
  let width = window.innerWidth;
  let timer = 0;
  window.addEventListener("resize", () => {
    // A phone's address bar changes the height all the time; only the width matters.
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(timer);
    timer = setTimeout(redrawAll, 120);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
  matchMedia("print").addEventListener("change", redrawAll);
}

/** Unpacks what a click on a summary opens, once. */
function openFold(details) {
  const script = details.querySelector(":scope > script.packed");
  if (script && !details.opened) {
    details.opened = unfold(script).then((html) => {
      script.replaceWith(fragment(html));
      setUp(details);
    });
  }
  return details.opened;
}

/** A link may lead into something that is folded up. */
async function openTarget() {
  const id = decodeURIComponent(location.hash.slice(1));
  const target = id && document.getElementById(id);
  if (!target) return;
  for (let at = target.closest("details"); at; at = at.parentElement.closest("details")) {
    await openFold(at);
    at.open = true;
  }
  target.scrollIntoView();
}

const watcher = new IntersectionObserver(
  (entries) =>
    entries.filter((e) => e.isIntersecting).forEach((e) => start(e.target).catch(() => {})),
  { rootMargin: "600px" },
);

/** Sets up everything inside `root`; of what is folded up the watcher sees the figures. */
function setUp(root) {
  setUpTables(root);
  setUpLegends(root);
  for (const details of root.querySelectorAll("details")) {
    details.addEventListener("toggle", () => details.open && openFold(details));
  }
  for (const figure of root.querySelectorAll("figure.fig")) {
    setUpFigure(figure);
    watcher.observe(figure);
  }
}

async function setUpReport() {
  setUp(document.body);
  window.addEventListener("hashchange", openTarget);
  setUpRedraw();
  const idle = window.requestIdleCallback || ((act) => setTimeout(act, 30));
  for (const figure of document.querySelectorAll("figure.fig")) {
    // What is folded up has no width to be drawn in; the watcher sees it when it unfolds.
    if (figure.closest("details:not([open])")) continue;
    await new Promise((done) => idle(done, { timeout: 200 }));
    await start(figure).catch((error) => console.error(error));
  }
  await openTarget();
}

schedlab.ready = setUpReport();
