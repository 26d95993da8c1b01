// SPDX-License-Identifier: MIT OR Apache-2.0
// Runs in a worker: the simulator as WebAssembly, and the callbacks of a policy in JavaScript. The
// page ends the worker if a policy never returns. One message is one question.

"use strict";

const NS_PER_MS = 1e6;
let simulator = null;
let memory = null;
/** The text of the last panic, for a message that says more than "unreachable". */
let panic = "";

/** Text of `length` bytes at `address` of the simulator's memory. */
function textAt(address, length) {
  return new TextDecoder().decode(new Uint8Array(memory.buffer, address, length));
}

/** What a policy sees of a task. Times are milliseconds. */
class Task {
  constructor(id, name) {
    Object.assign(this, { id, name });
  }

  /** Takes over what the simulator says of the task. */
  update([nice, prio, cpu, released, ran]) {
    Object.assign(this, { nice, prio, cpu });
    this.released = released / NS_PER_MS;
    this.ran = ran / NS_PER_MS;
  }
}

/** The callbacks that a policy may have. */
const CALLBACKS = ["enqueue", "dequeue", "pick", "quantum", "tick"];

/** The policy of the present run: its callbacks, its tasks and its first exception. */
const rules = { callbacks: null, tasks: [], exception: "" };

/** The callbacks that a policy's text names, found by the object that it passes to `policy`. */
function readPolicy(source) {
  rules.callbacks = null;
  self.policy = (callbacks) => (rules.callbacks = callbacks);
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  try {
    importScripts(address);
  } finally {
    URL.revokeObjectURL(address);
    delete self.policy;
  }
  const found = rules.callbacks;
  if (!found || typeof found.pick !== "function") {
    throw new Error("the policy has no pick: call policy({ pick(cpu, waiting) { ... } })");
  }
  for (const name of Object.keys(found)) {
    if (!CALLBACKS.includes(name)) {
      const allowed = CALLBACKS.join(", ");
      throw new Error(`a policy knows no callback ${name}: allowed are ${allowed}`);
    }
    if (typeof found[name] !== "function") throw new Error(`${name} is not a function`);
  }
}

/** The line of the policy in which an error was thrown, from 1; 0 if unknown. */
function lineOf(error) {
  const place = /blob:[^\s)]*?:(\d+):\d+/.exec((error && error.stack) || "");
  return place ? Number(place[1]) : 0;
}

/** Calls a callback. An exception is kept, and answered by -1. */
function ask(act) {
  try {
    return act();
  } catch (error) {
    if (!rules.exception) {
      const line = lineOf(error);
      rules.exception = (line ? `line ${line}: ` : "") + String(error);
    }
    return -1;
  }
}

/** Calls a callback if the policy has it. */
function call(name, ...values) {
  const { callbacks } = rules;
  return callbacks[name] ? callbacks[name](...values) : undefined;
}

/** The simulator's imports that ask the policy. */
const asked = {
  show(id, name, length, numbers, count) {
    const task = (rules.tasks[id] ||= new Task(id, textAt(name, length)));
    const values = new Float64Array(memory.buffer.slice(numbers, numbers + 8 * count));
    task.update(values);
    rules.now = values[values.length - 1] / NS_PER_MS;
  },
  enqueue(id, why, length) {
    const text = textAt(why, length);
    return ask(() => (call("enqueue", rules.tasks[id], text, rules.now) ? 1 : 0));
  },
  dequeue(id) {
    return ask(() => {
      call("dequeue", rules.tasks[id], rules.now);
      return 0;
    });
  },
  pick(cpu, address, count, now) {
    const ids = Array.from(new Uint32Array(memory.buffer, address, count));
    rules.now = now / NS_PER_MS;
    return ask(() => {
      const waiting = ids.map((id) => rules.tasks[id]);
      const chosen = rules.callbacks.pick(cpu, waiting, rules.now);
      const id = chosen && typeof chosen === "object" ? chosen.id : chosen;
      if (!Number.isInteger(id) || !ids.includes(id)) {
        const names = waiting.slice(0, 8).map((task) => `${task.name} (id ${task.id})`);
        throw new Error(
          `pick returned ${String(id)}: return one of the waiting tasks, ${names.join(", ")}`,
        );
      }
      return id;
    });
  },
  quantum(id) {
    return ask(() => {
      const ms = call("quantum", rules.tasks[id], rules.now);
      if (ms === undefined || ms === null || ms === Infinity) return 0;
      if (typeof ms !== "number" || !(ms > 0)) {
        throw new Error(`quantum returned ${String(ms)}: return milliseconds above 0, or nothing`);
      }
      return Math.max(1, Math.round(ms * NS_PER_MS));
    });
  },
  has_tick() {
    return rules.callbacks && rules.callbacks.tick ? 1 : 0;
  },
  tick(id, ran) {
    return ask(() => (call("tick", rules.tasks[id], ran / NS_PER_MS, rules.now) ? 1 : 0));
  },
  exception(into, max) {
    const bytes = new TextEncoder().encode(rules.exception).subarray(0, max);
    new Uint8Array(memory.buffer, into, bytes.length).set(bytes);
    return bytes.length;
  },
};

/** Asks the simulator. The columns are copies. */
function question(message) {
  const bytes = new TextEncoder().encode(JSON.stringify(message));
  const into = simulator.input(bytes.length);
  new Uint8Array(memory.buffer, into, bytes.length).set(bytes);
  const length = simulator.call();
  const answer = JSON.parse(textAt(simulator.reply(), length));
  const start = simulator.columns();
  const types = { f64: Float64Array, u32: Uint32Array, u8: Uint8Array };
  const columns = {};
  for (const { name, kind, offset, length: count } of answer.columns || []) {
    const width = types[kind].BYTES_PER_ELEMENT;
    const copy = memory.buffer.slice(start + offset, start + offset + count * width);
    columns[name] = new types[kind](copy);
  }
  return { ...answer, columns };
}

async function load(module) {
  const imports = {
    policy: asked,
    page: { panicked: (address, length) => (panic = textAt(address, length)) },
  };
  const instance = await WebAssembly.instantiate(module, imports);
  simulator = instance.exports;
  memory = simulator.memory;
  simulator.start();
}

self.onmessage = async ({ data: { id, module, message, source } }) => {
  try {
    if (module) await load(module);
    Object.assign(rules, { tasks: [], exception: "", now: 0 });
    if (source !== undefined) readPolicy(source);
    const answer = message ? question(message) : {};
    const parts = Object.values(answer.columns || {}).map((column) => column.buffer);
    self.postMessage({ id, answer }, parts);
  } catch (error) {
    const line = source === undefined ? 0 : lineOf(error);
    const what = String((error && error.message) || error);
    const text = panic || (line ? `line ${line}: ${what}` : what);
    self.postMessage({ id, answer: { error: { text, in_policy: source !== undefined } } });
  }
};
