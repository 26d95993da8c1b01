// SPDX-License-Identifier: MIT OR Apache-2.0
// Runs in a worker: the simulator as WebAssembly, and the callbacks of a policy in JavaScript
// (crates/script/src/policy.js, which comes before this file). The page ends the worker if a policy
// never returns. One message is one question.

"use strict";

let simulator = null;
let memory = null;
/** The text of the last panic, for a message that says more than "unreachable". */
let panic = "";

/** Text of `length` bytes at `address` of the simulator's memory. */
function textAt(address, length) {
  return new TextDecoder().decode(new Uint8Array(memory.buffer, address, length));
}

/** The line of the policy in which an error was thrown, from 1; 0 if unknown. */
function lineOf(error) {
  const place = /blob:[^\s)]*?:(\d+):\d+/.exec((error && error.stack) || "");
  return place ? Number(place[1]) : 0;
}

/** The policy of the present run. */
const rules = schedlabPolicy(lineOf);

/** Reads a policy's text. */
function readPolicy(source) {
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  try {
    rules.read(() => importScripts(address));
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** The simulator's imports that ask the policy: values of its memory become plain values. */
const asked = {
  seed: rules.seed,
  show(id, name, length, numbers, count) {
    const values = new Float64Array(memory.buffer.slice(numbers, numbers + 8 * count));
    rules.show(id, textAt(name, length), values);
  },
  enqueue: (id, why, length) => rules.enqueue(id, textAt(why, length)),
  dequeue: rules.dequeue,
  pick: (cpu, address, count, now) =>
    rules.pick(cpu, Array.from(new Uint32Array(memory.buffer, address, count)), now),
  quantum: rules.quantum,
  has_tick: () => (rules.hasTick() ? 1 : 0),
  tick: rules.tick,
  exception(into, max) {
    const bytes = new TextEncoder().encode(rules.exception()).subarray(0, max);
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
    rules.reset();
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
