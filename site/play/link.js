// SPDX-License-Identifier: MIT OR Apache-2.0
// The state of the playground as the fragment of its address: JSON, packed by deflate, in base64
// for addresses. A link comes from anywhere, so whatever does not fit is left out.

const LINK_CHARS_MAX = 200000;
const TEXT_CHARS_MAX = 400000;
const RUNS_MAX = 4;

async function through(bytes, stream) {
  const piped = new Blob([bytes]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(piped).arrayBuffer());
}

/** The fragment of a state. */
async function toLink(state) {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  const packed = await through(bytes, new CompressionStream("deflate-raw"));
  let text = "";
  for (const byte of packed) text += String.fromCharCode(byte);
  return "1" + btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The state of a fragment. Throws if it is none. */
async function fromLink(fragment) {
  if (fragment.length > LINK_CHARS_MAX) throw new Error("it is too long");
  if (fragment[0] !== "1") throw new Error("it is of another version");
  const base64 = fragment.slice(1).replaceAll("-", "+").replaceAll("_", "/");
  const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const reader = new Blob([packed])
    .stream()
    .pipeThrough(new DecompressionStream("deflate-raw"))
    .getReader();
  // A few bytes may unpack to gigabytes.
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
    if (text.length > TEXT_CHARS_MAX) throw new Error("it holds too much");
  }
  return checkedState(JSON.parse(text));
}

function text(value, fallback, most = 100) {
  return typeof value === "string" && value.length <= most ? value : fallback;
}

function whole(value, fallback, least, most) {
  return Number.isInteger(value) && value >= least && value <= most ? value : fallback;
}

/** The state with every member of the right type; what is wrong gets the default. */
function checkedState(found) {
  const state = startState();
  if (!found || typeof found !== "object") return state;
  state.mode = ["table", "file", "builtin"].includes(found.mode) ? found.mode : state.mode;
  if (Array.isArray(found.jobs)) {
    state.jobs = found.jobs.slice(0, JOBS_MAX).map((row) => {
      const fallback = job("job", 0, 1);
      for (const key of Object.keys(fallback)) fallback[key] = text(row?.[key], fallback[key]);
      if (!POLICIES.includes(fallback.policy)) fallback.policy = "OTHER";
      return fallback;
    });
  }
  state.file = text(found.file, state.file, TEXT_CHARS_MAX);
  state.builtin = text(found.builtin, state.builtin, 300);
  state.cpus = whole(found.cpus, state.cpus, 1, 64);
  state.costs = found.costs === true;
  state.seed = whole(found.seed, state.seed, 0, Number.MAX_SAFE_INTEGER);
  state.until = text(found.until, state.until, 30);
  state.policy = text(found.policy, state.policy, TEXT_CHARS_MAX);
  if (Array.isArray(found.runs) && found.runs.length) {
    state.runs = found.runs.slice(0, RUNS_MAX).map((run) => {
      const settings = {};
      for (const [name, value] of Object.entries(run?.settings || {}).slice(0, 50)) {
        if (typeof value === "string" && value.length <= 100) settings[name] = value;
      }
      return { scheduler: text(run?.scheduler, "rr"), settings };
    });
  }
  return state;
}
