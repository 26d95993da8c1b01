// SPDX-License-Identifier: MIT OR Apache-2.0
// What lies between a simulator and the text of a policy in JavaScript: the callbacks, the tasks
// that they see, checks of what they return. The page's worker and the command line's interpreter
// load this same file, so a policy behaves alike in both.

"use strict";

/**
 * The policy of a run. The simulator passes plain values in nanoseconds, and policies see
 * milliseconds. An exception is kept, and answered by -1.
 *
 * `lineOf(error)` is the line of the policy's text in which an error was thrown, 0 if unknown.
 */
function schedlabPolicy(lineOf) {
  const NS_PER_MS = 1e6;

  /** The callbacks that a policy may have. */
  const CALLBACKS = ["enqueue", "dequeue", "pick", "quantum", "tick"];

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

  let callbacks = null;
  let tasks = [];
  let exception = "";
  let now = 0;
  let random = 0;

  /** Math.random of a run: mulberry32, so that a seed gives the same numbers everywhere. */
  function draw() {
    random = (random + 0x6d2b79f5) | 0;
    let mixed = Math.imul(random ^ (random >>> 15), random | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An error's text with the line of the policy. */
  function textOf(error) {
    const line = lineOf(error);
    return (line ? `line ${line}: ` : "") + String(error);
  }

  /** Calls a callback. An exception is kept, and answered by -1. */
  function ask(act) {
    try {
      return act();
    } catch (error) {
      exception ||= textOf(error);
      return -1;
    }
  }

  /** Calls a callback if the policy has it. */
  function call(name, ...values) {
    return callbacks[name] ? callbacks[name](...values) : undefined;
  }

  /** The task that `pick` returned, or its number. */
  function numberOf(chosen, ids) {
    const id = chosen && typeof chosen === "object" ? chosen.id : chosen;
    if (!Number.isInteger(id) || !ids.includes(id)) {
      const names = ids.slice(0, 8).map((other) => `${tasks[other].name} (id ${other})`);
      throw new Error(
        `pick returned ${String(id)}: return one of the waiting tasks, ${names.join(", ")}`,
      );
    }
    return id;
  }

  return {
    /** Forgets the run before. */
    reset() {
      tasks = [];
      exception = "";
      now = 0;
    },

    /** Runs the policy's text by `evaluate` and keeps the object that it passes to `policy`. */
    read(evaluate) {
      callbacks = null;
      globalThis.policy = (given) => (callbacks = given);
      Math.random = draw;
      try {
        evaluate();
      } finally {
        delete globalThis.policy;
      }
      if (!callbacks || typeof callbacks.pick !== "function") {
        throw new Error("the policy has no pick: call policy({ pick(cpu, waiting) { ... } })");
      }
      for (const name of Object.keys(callbacks)) {
        if (!CALLBACKS.includes(name)) {
          const allowed = CALLBACKS.join(", ");
          throw new Error(`a policy knows no callback ${name}: allowed are ${allowed}`);
        }
        if (typeof callbacks[name] !== "function") throw new Error(`${name} is not a function`);
      }
    },

    textOf,

    /** The first exception of the run. */
    exception: () => exception,

    /** Begins the random numbers of a run. */
    seed(value) {
      random = value | 0;
    },

    /** Describes a task before a callback: nice, prio, cpu, release, CPU time, the time now. */
    show(id, name, numbers) {
      (tasks[id] ||= new Task(id, name)).update(numbers);
      now = numbers[5] / NS_PER_MS;
    },

    enqueue(id, why) {
      return ask(() => (call("enqueue", tasks[id], why, now) ? 1 : 0));
    },

    dequeue(id) {
      return ask(() => {
        call("dequeue", tasks[id], now);
        return 0;
      });
    },

    pick(cpu, ids, nowNs) {
      now = nowNs / NS_PER_MS;
      return ask(() => {
        const waiting = ids.map((id) => tasks[id]);
        return numberOf(callbacks.pick(cpu, waiting, now), ids);
      });
    },

    quantum(id) {
      return ask(() => {
        const ms = call("quantum", tasks[id], now);
        if (ms === undefined || ms === null || ms === Infinity) return 0;
        if (typeof ms !== "number" || !(ms > 0)) {
          const text = `quantum returned ${String(ms)}: return milliseconds above 0, or nothing`;
          throw new Error(text);
        }
        return Math.max(1, Math.round(ms * NS_PER_MS));
      });
    },

    hasTick() {
      return Boolean(callbacks && callbacks.tick);
    },

    tick(id, ranNs) {
      return ask(() => (call("tick", tasks[id], ranNs / NS_PER_MS, now) ? 1 : 0));
    },
  };
}
