// The engine, in workers made from Blobs: every call is a request with one answer.
import { update } from "lab:report";
import { startLab } from "../client.js";
import { PageError } from "./errors.js";

/** An error that the engine answered with; `problems` are those of a config, [{key, line, column, message}]. */
class EngineError extends PageError {
  constructor({ kind = "internal", message = "unknown error", problems = [] }) {
    super(plain(message));
    this.kind = kind;
    this.problems = problems.map((problem) => ({ ...problem, message: plain(problem.message) }));
  }
}

// Returns a message without the folder of the engine that holds the user's files.
const plain = (message) => message.replace(/(?<![\w.-])\/lab\//g, "");

const kMostWorkers = 4; // as many as a config has shards by default
const kPatience = 1000; // milliseconds of a call from which on the page offers to stop it
const textOf = (id) => document.getElementById(id).textContent;

/** Returns the engine's bytes, which the page holds in base64 of gzip. */
async function embedded() {
  const bytes = Uint8Array.from(atob(textOf("wasm")), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

let parts = null; // {url, wasm}: the script of the workers and the compiled engine

async function start(most) {
  parts ??= (async () => ({
    url: URL.createObjectURL(new Blob([textOf("worker")], { type: "text/javascript" })),
    wasm: await WebAssembly.compile(await embedded()),
  }))();
  const { url, wasm } = await parts;
  const workers = Math.max(1, Math.min(navigator.hardwareConcurrency || 1, most));
  return startLab({ makeWorker: () => new Worker(url), wasm, workers });
}

// Workers that hold a session. Those that have been closed answer every call with an error of kind "stopped".
class Engine {
  #lab;
  #late = 0; // calls that take long

  constructor(workers = kMostWorkers) {
    this.#lab = start(workers);
  }

  get isLate() {
    return this.#late > 0;
  }

  #count(more) {
    this.#late += more;
    lateCalls += more;
    update({ busy: lateCalls > 0 });
  }

  async call(method, request) {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      this.#count(1);
    }, kPatience);
    try {
      const answer = await (await this.#lab).call(method, request);
      if (answer?.error) throw new EngineError(answer.error);
      return answer;
    } finally {
      clearTimeout(timer);
      if (isLate) this.#count(-1);
    }
  }

  close() {
    this.#lab.then(
      (lab) => lab.close(),
      () => {},
    );
  }
}

let lateCalls = 0;
let present = null; // the engine of the session that the page shows
let opening = null; // one in which a run is being opened
let adviser = null; // one without a session

/** Calls a method of the session and returns its answer. Throws EngineError. */
export async function call(method, request = {}) {
  if (!present) throw new EngineError({ kind: "stopped", message: "no run is open" });
  return present.call(method, request);
}

/** Calls a method that needs no session, such as `resolve`: what it is given does not reach the one that is open. */
export async function ask(method, request = {}) {
  adviser ??= new Engine(1);
  return adviser.call(method, request);
}

/**
 * Calls a method that opens a run, in workers of its own. Returns the answer, and accept() to put them in the place of the
 * present ones, which keep their session until then. Ends another opening that is under way.
 */
export async function prepare(method, request) {
  opening?.close();
  const mine = new Engine();
  opening = mine;
  const end = () => {
    if (opening === mine) opening = null;
  };
  try {
    const answer = await mine.call(method, request);
    const accept = () => {
      end();
      present?.close();
      present = mine;
    };
    return { answer, accept, discard: () => (end(), mine.close()) };
  } catch (error) {
    end();
    mine.close();
    if (error.kind === "failed") error.kind = "internal"; // these workers alone
    throw error;
  }
}

/** Ends the workers that take long, except those of the session while others do; returns whether the session is lost. */
export function end() {
  const others = [opening, adviser].filter((engine) => engine?.isLate);
  for (const engine of others) engine.close();
  if (adviser?.isLate) adviser = null;
  if (others.length) return false;
  present?.close();
  present = null;
  return true;
}
