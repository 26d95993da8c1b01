// SPDX-License-Identifier: MIT OR Apache-2.0
// The state that the playground starts with.

/** The policy that the editor begins with. */
const POLICY_START = `// Round robin with turns of 4 ms. Times are milliseconds.
policy({
  // Required: the task that the CPU runs next, one of those that wait, in order of arrival.
  pick(cpu, waiting, now) {
    return waiting[0];
  },
  // Optional: the longest turn of a task. Without it a task runs until it blocks.
  quantum(task, now) {
    return 4;
  },
  // Optional: a task starts to wait. "why" is new, wakeup, preempted, expired, yielded or changed.
  // Return true to preempt the task that runs on its CPU.
  enqueue(task, why, now) {
    return false;
  },
  // Also optional: dequeue(task, now), when a task blocks or exits; tick(task, ran, now), at each
  // tick of the kernel: true ends the turn.
});
// A task has id, name, nice, prio (the kernel's priority, lower is more important), cpu,
// released, and ran (its CPU time so far).
`;

/** What the page starts with: five jobs under three textbook schedulers and one of Linux. */
function startState() {
  return {
    mode: "table",
    jobs: EXAMPLES[0].jobs.map((row) => ({ ...row })),
    file: fileOf(EXAMPLES[0].jobs),
    builtin: "hogs:n=4,work=40ms",
    cpus: 1,
    costs: false,
    seed: 1,
    until: "",
    runs: [
      { scheduler: "fcfs", settings: {} },
      { scheduler: "srtf", settings: {} },
      { scheduler: "rr", settings: { quantum: "2ms" } },
      { scheduler: "linux-6.12", settings: {} },
    ],
    policy: POLICY_START,
  };
}

/** The name of a policy in JavaScript among the schedulers. */
const POLICY = "policy";
