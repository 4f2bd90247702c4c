// The lab in Node: its workers are threads that run the bundle which the page runs in Web Workers.
import { readFileSync } from "node:fs";
import { Worker as Thread } from "node:worker_threads";
import { startLab } from "../../../src/addons/lab/client.js";

const root = new URL("../../../", import.meta.url);

class NodeWorker {
  constructor() {
    const bundle = new URL("build/lab/worker.js", root).pathname;
    this.thread = new Thread(new URL("node_worker.mjs", import.meta.url), { workerData: { bundle } });
    this.thread.on("message", (data) => this.onmessage?.({ data }));
    this.thread.on("error", (error) => this.onerror?.({ message: error.stack }));
  }
  postMessage(message, transfer) {
    this.thread.postMessage(message, transfer);
  }
  terminate() {
    return this.thread.terminate();
  }
}

export const start = (workers = 1) =>
  startLab({ makeWorker: () => new NodeWorker(), wasm: readFileSync(new URL("build/lab/src/addons/lab/lab.wasm", root)), workers });

// Starts the lab, calls use(lab, call) and closes it; call() throws the errors that the lab answers.
export async function withLab(workers, use) {
  const lab = await start(workers);
  const call = async (method, given) => {
    const answer = await lab.call(method, given);
    if (answer.error) throw new Error(`${method}: ${answer.error.kind}: ${answer.error.message}`);
    return answer;
  };
  try {
    return await use(lab, call);
  } finally {
    lab.close();
  }
}
