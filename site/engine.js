// SPDX-License-Identifier: MIT OR Apache-2.0
// The page's side of the simulator: one worker, one question at a time, and an end to what takes
// too long. `SIMULATOR` (gzip in base64) and `WORKER` (text) are added by the build.

/** Longest time a run may take before its worker is ended. */
const RUN_MS_MAX = 10000;
/** The same with a policy of the reader's own, whose loops may be endless. */
const POLICY_MS_MAX = 3000;

class Engine {
  constructor() {
    this.next = 0;
    this.worker = null;
    this.queue = Promise.resolve();
    this.module = this.compile();
  }

  async compile() {
    const packed = Uint8Array.from(atob(SIMULATOR), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return WebAssembly.compile(await new Response(stream).arrayBuffer());
  }

  /** Starts a worker with the simulator in it. */
  async start() {
    const module = await this.module;
    const address = URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
    this.worker = new Worker(address);
    URL.revokeObjectURL(address);
    const { error } = await this.send({ module }, RUN_MS_MAX);
    if (error) throw new Error(error.text);
  }

  /** Ends the worker; the next question starts another. */
  stop() {
    if (this.worker) this.worker.terminate();
    this.worker = null;
  }

  send(message, most) {
    const id = this.next++;
    const worker = this.worker;
    return new Promise((done) => {
      const end = (answer) => {
        clearTimeout(timer);
        worker.removeEventListener("message", listen);
        done(answer);
      };
      const listen = ({ data }) => data.id === id && end(data.answer);
      const timer = setTimeout(() => {
        this.stop();
        end({ error: { text: tooLong(most, message.source), stopped: true } });
      }, most);
      worker.addEventListener("message", listen);
      worker.onerror = (event) => end({ error: { text: event.message || "the worker failed" } });
      worker.postMessage({ id, ...message });
    });
  }

  /** The answer to `message`; `source` is the policy that the run needs. */
  ask(message, source) {
    const turn = this.queue.then(async () => {
      if (!this.worker) await this.start();
      const most = source === undefined ? RUN_MS_MAX : POLICY_MS_MAX;
      return this.send({ message, source }, most);
    });
    this.queue = turn.catch(() => {});
    return turn;
  }
}

function tooLong(most, source) {
  const time = `The run took longer than ${most / 1000} s and was stopped.`;
  return source === undefined
    ? time + " Give the tasks less to do, or set an end."
    : time + " The policy may contain an endless loop.";
}
