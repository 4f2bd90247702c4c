// The engine, in workers made from Blobs: every call is a request with one answer.
import { startLab } from "../client.js";

/** An error that the engine answered with; `problems` are those of a config, [{key, line, column, message}]. */
class EngineError extends Error {
  constructor({ kind = "internal", message = "unknown error", problems = [] }) {
    super(plain(message));
    this.kind = kind;
    this.problems = problems.map((problem) => ({ ...problem, message: plain(problem.message) }));
  }
}

// Returns a message without the folder of the engine that holds the user's files.
const plain = (message) => message.replace(/(?<![\w.-])\/lab\//g, "");

const kMostWorkers = 4; // as many as a config has shards by default
const textOf = (id) => document.getElementById(id).textContent;

/** Returns the engine's bytes, which the page holds in base64 of gzip. */
async function embedded() {
  const bytes = Uint8Array.from(atob(textOf("wasm")), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

async function start() {
  const url = URL.createObjectURL(new Blob([textOf("worker")], { type: "text/javascript" }));
  const workers = Math.max(1, Math.min(navigator.hardwareConcurrency || 1, kMostWorkers));
  return startLab({ makeWorker: () => new Worker(url), wasm: await embedded(), workers });
}

let lab = null;

/** Calls a method of the engine and returns its answer. Throws EngineError. */
export async function call(method, request = {}) {
  lab ??= start();
  const answer = await (await lab).call(method, request);
  if (answer?.error) throw new EngineError(answer.error);
  return answer;
}
