// Starts the workers of the lab, and sends them the requests of the page.

const MAX_WORKERS = 8;

// The session and the instances that share its steps; README.md states the calls.
class Lab {
  #workers;
  #waiting = new Map();
  #next = 0;
  #queue = Promise.resolve();
  #ended = null; // the answer to every call, once the workers have ended

  constructor(workers) {
    this.#workers = workers;
    workers.forEach((worker) => {
      worker.onmessage = ({ data: { id, result } }) => {
        this.#waiting.get(id)?.(result);
        this.#waiting.delete(id);
      };
      worker.onerror = (event) => this.#end("failed", `the worker failed: ${event.message}`);
    });
  }

  async start(wasm) {
    const { length } = this.#workers;
    const ports = this.#workers.map(() => Array(length).fill(null));
    for (let a = 0; a < length; ++a)
      for (let b = a + 1; b < length; ++b) {
        const { port1, port2 } = new MessageChannel();
        ports[a][b] = port1;
        ports[b][a] = port2;
      }
    const answers = await Promise.all(
      this.#workers.map((worker, index) =>
        this.#post(
          worker,
          { wasm, index, ports: ports[index] },
          ports[index].filter((port) => port),
        ),
      ),
    );
    const failed = answers.find((answer) => answer.error);
    if (failed) throw new Error(failed.error.message);
  }

  // Ends the workers. Calls that wait, and all later ones, answer with the error.
  #end(kind, message) {
    this.#ended ??= { error: { kind, message, problems: [] } };
    for (const worker of this.#workers) worker.terminate();
    for (const resolve of this.#waiting.values()) resolve(this.#ended);
    this.#waiting.clear();
  }

  #post(worker, message, transfer = []) {
    if (this.#ended) return Promise.resolve(this.#ended);
    return new Promise((resolve) => {
      const id = ++this.#next;
      this.#waiting.set(id, resolve);
      worker.postMessage({ ...message, id }, transfer);
    });
  }

  #request(index, method, given) {
    return this.#post(this.#workers[index], { request: { ...given, method } });
  }

  // Resolves to the answer, after those of earlier calls.
  call(method, given = {}) {
    const answer = this.#queue.then(() => this.#answer(method, given));
    this.#queue = answer.catch(() => {});
    return answer;
  }

  async #answer(method, given) {
    const answer = await this.#request(0, method, given);
    if (answer.error || this.#workers.length === 1 || answer.trained || !["open", "load", "set"].includes(method)) return answer;
    const others = this.#workers.slice(1).map((_, i) => i + 1);
    // Others start like the session, or with the state that it has saved.
    const [same, same_given] = method === "set" ? ["load", await this.#request(0, "save", {})] : [method, given];
    const answers = same_given.error ? [same_given] : await Promise.all(others.map((index) => this.#request(index, same, same_given)));
    const failed = answers.find((other) => other.error);
    if (!failed) return answer;
    // The workers hold different sessions now, which must not make a step together.
    this.#end("failed", failed.error.message);
    return this.#ended;
  }

  // Ends the workers, also in the middle of a call, which then answers with an error of kind "stopped".
  close() {
    this.#end("stopped", "stopped");
  }
}

// Starts `workers` workers with the engine `wasm`, an ArrayBuffer or a WebAssembly.Module.
export async function startLab({ makeWorker, wasm, workers = 1 }) {
  const module = wasm instanceof WebAssembly.Module ? wasm : await WebAssembly.compile(wasm);
  const lab = new Lab(Array.from({ length: Math.min(Math.max(workers, 1), MAX_WORKERS) }, makeWorker));
  await lab.start(module);
  return lab;
}
