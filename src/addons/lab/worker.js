// A worker of the lab: an instance of the engine, which answers the requests of the page and computes shards with the
// instances of other workers.

import makeLab from "../../../build/lab/src/addons/lab/lab.js";
import { parseYaml } from "./yaml.js";

const FILES = "/lab",
  LOADED = "/lab/loaded";
// The files of a run directory. Others in it are none of its own.
const RUN_FILE = /^((config\.yaml|data\.json|metrics\.jsonl|summary\.json)|checkpoints\/(step-\d+|best|final)\.safetensors)$/;

// An instance of the engine.
class Engine {
  static async make(wasm) {
    return new Promise((resolve, reject) => {
      const instantiateWasm = (imports, ready) => {
        WebAssembly.instantiate(wasm, imports)
          .then((made) => ready(made.instance ?? made, made.module ?? wasm))
          .catch(reject);
        return {};
      };
      makeLab({ parseYaml, instantiateWasm }).then((lab) => resolve(new Engine(lab)), reject);
    });
  }

  constructor(lab) {
    this.lab = lab;
  }

  call(method, given = {}) {
    const { lab } = this;
    const text = JSON.stringify({ ...given, method });
    const size = lab.lengthBytesUTF8(text) + 1;
    const request = lab._malloc(size);
    if (request === 0) return failure("memory", "not enough memory for the request");
    lab.stringToUTF8(text, request, size);
    const answer = lab._lab_call(request);
    lab._free(request);
    if (answer === 0) return failure("memory", "not enough memory for the answer");
    const json = lab.UTF8ToString(answer);
    lab._free(answer);
    return JSON.parse(json);
  }

  // Returns the bytes at [address, size], which are valid until memory grows.
  bytes([address, size]) {
    return this.lab.HEAPU8.subarray(address, address + size);
  }

  // Writes files below a folder, which may have folders of their own.
  write(folder, files) {
    const { FS } = this.lab;
    for (const [name, content] of Object.entries(files ?? {})) {
      const path = below(folder, name);
      const parent = path.slice(0, path.lastIndexOf("/"));
      if (!FS.analyzePath(parent).exists) FS.mkdirTree(parent);
      FS.writeFile(path, content);
    }
  }

  // Returns the files below a folder: {path: bytes}.
  read(folder, prefix = "", found = {}) {
    const { FS } = this.lab;
    for (const name of FS.readdir(folder)) {
      if (name === "." || name === "..") continue;
      const path = `${folder}/${name}`;
      if (FS.isDir(FS.stat(path).mode)) this.read(path, `${prefix}${name}/`, found);
      else found[prefix + name] = FS.readFile(path);
    }
    return found;
  }

  remove(folder) {
    const { FS } = this.lab;
    if (!FS.analyzePath(folder).exists) return;
    for (const name of FS.readdir(folder)) {
      if (name === "." || name === "..") continue;
      const path = `${folder}/${name}`;
      if (FS.isDir(FS.stat(path).mode)) {
        this.remove(path);
        FS.rmdir(path);
      } else {
        FS.unlink(path);
      }
    }
  }
}

// Returns the path of a file below a folder, which it does not leave.
const below = (folder, name) => [folder, ...name.split("/").filter((part) => part !== "" && part !== "." && part !== "..")].join("/");

// Returns the changes in metrics.jsonl, of which those of a key at one step are one, and none if they cancel.
function changesIn(metrics) {
  const changes = new Map();
  for (const line of metrics.split("\n").filter((text) => text.includes('"split":"change"'))) {
    let change;
    try {
      change = JSON.parse(line);
    } catch {
      continue; // of an edited log
    }
    const name = `${change.step} ${change.key}`;
    changes.set(name, { ...change, from: (changes.get(name) ?? change).from });
  }
  return [...changes.values()].filter(({ from, to }) => from !== to);
}

const failure = (kind, message) => ({ error: { kind, message, problems: [] } });

// The shards of a step that an instance computes, of `count` shards.
const share = (count, index, workers) => ({
  first: Math.floor((count * index) / workers),
  last: Math.floor((count * (index + 1)) / workers),
});

// An instance among those that compute the shards of a step. Worker 0 says when a step starts; then each computes its
// shards, sends them to all others, and makes the step of all shards.
class Worker {
  constructor(engine, index, ports) {
    this.engine = engine;
    this.index = index;
    this.ports = ports; // by worker; none for itself
    this.shards = [];
    this.arrived = ports.map(() => []); // shards of others, a step after the other
    this.arrival = null;
    this.queue = Promise.resolve();
    ports.forEach((port, i) => {
      if (port) port.onmessage = ({ data }) => this.receive(i, data);
    });
  }

  // Calls f() after what was asked for before, and returns what it returns.
  enqueue(f) {
    const result = this.queue.then(f);
    this.queue = result.catch(() => {});
    return result;
  }

  receive(from, { shards }) {
    if (!shards) {
      this.enqueue(() => this.makeStep());
      return;
    }
    this.arrived[from].push(shards);
    this.arrival?.();
  }

  opened(answer) {
    if (!answer.error) {
      this.shards = answer.buffers;
      delete answer.buffers;
      const count = this.shards.length;
      this.workers = Math.min(this.ports.length, count);
      this.share = share(count, this.index, this.workers);
    }
    return answer;
  }

  // Returns the answer of `update`, or the first error.
  async makeStep() {
    const { workers, index } = this;
    const others = this.ports.filter((port, i) => port && i < workers);
    const queues = this.arrived.filter((_, i) => i !== index && i < workers);
    if (index === 0) for (const port of others) port.postMessage({});
    const computed = this.engine.call("compute", this.share);
    const mine = this.shards.slice(this.share.first, this.share.last);
    for (const port of others) {
      const parts = mine.flatMap(({ gradients, sums }) => [gradients, sums].map((place) => this.engine.bytes(place).slice()));
      const shards = { first: this.share.first, parts, error: computed.error };
      port.postMessage(
        { shards },
        parts.map((part) => part.buffer),
      );
    }
    while (queues.some((queue) => queue.length === 0)) await new Promise((resolve) => (this.arrival = resolve));
    const arrived = queues.map((queue) => queue.shift());
    const failed = [computed, ...arrived].find(({ error }) => error);
    if (failed) return { error: failed.error };
    for (const { first, parts } of arrived)
      parts.forEach((part, i) => {
        const shard = this.shards[first + (i >> 1)];
        this.engine.bytes(i % 2 === 0 ? shard.gradients : shard.sums).set(part);
      });
    return this.engine.call("update");
  }

  // Makes steps as the method `step` of one instance does.
  async step({ milliseconds = Infinity, steps = milliseconds === Infinity ? 1 : Infinity }) {
    const start = performance.now();
    const all = { reports: [], validations: [], heads: [] };
    let made = 0,
      sequences = 0,
      last;
    do {
      last = await this.makeStep();
      if (last.error) return made === 0 ? last : { ...all, ...last };
      for (const list of Object.keys(all)) all[list].push(...last[list]);
      sequences += last.sequences;
      ++made;
    } while (!last.stopped && made < steps && performance.now() - start < milliseconds);
    return { ...last, ...all, sequences, seconds: (performance.now() - start) / 1000 };
  }

  async answer({ method, ...given }) {
    const { engine } = this;
    const others = this.index > 0;
    if (others) given.role = "shards";
    // Files of an earlier config are none of this one.
    if (method === "resolve" && this.shards.length === 0) engine.remove(FILES);
    if (given.files && method !== "load") engine.write(FILES, given.files);
    switch (method) {
      case "open":
      case "set":
        delete given.files;
        return this.opened(engine.call(method, given));
      case "load":
        return this.opened(this.load(given));
      case "step":
        return this.workers > 1 ? this.step(given) : engine.call("step", given);
      case "save":
        return this.save();
      default:
        delete given.files;
        return engine.call(method, given);
    }
  }

  // Opens the files of a run directory, in a folder of any name, or weights alone.
  load({ files, config: given, role }) {
    const names = Object.keys(files);
    const top = names.find((name) => /(^|\/)checkpoints\//.test(name))?.replace(/checkpoints\/.*/, "");
    if (top === undefined) {
      const weights = names.find((name) => name.endsWith(".safetensors"));
      if (!weights) return failure("data", "no checkpoint among these files; open a run or a .safetensors file");
      this.engine.write(FILES, files);
      if (given) this.engine.write(FILES, { "config.yaml": given });
      return this.engine.call("load", { weights: `${FILES}/${weights}`, role, ...(given ? { config: `${FILES}/config.yaml` } : {}) });
    }
    const decoded = (name) => new TextDecoder().decode(files[top + name] ?? new Uint8Array());
    this.engine.remove(LOADED);
    const own = names.filter((name) => name.startsWith(top) && RUN_FILE.test(name.slice(top.length)));
    for (const name of own) this.engine.write(LOADED, { [name.slice(top.length)]: files[name] });
    // A run of the native program names data files where they were there; those that came with it are here.
    const missing = [];
    const here = (whole, start, name, end) => {
      const found = names.find((path) => !own.includes(path) && (path === name || path.endsWith(`/${name}`)));
      if (!found) return missing.push(name) && whole;
      this.engine.write(FILES, { [found]: files[found] });
      return `${start}${below(FILES, found)}${end}`;
    };
    const moved = decoded("config.yaml").replace(/^( +(?:\w+_)?file: "?)(?:.*\/)?([^/"\n]+)("?)$/gm, here);
    if (missing.length) return failure("data", `the run was trained on ${missing.join(", ")}; open the run and its data together`);
    if (moved) this.engine.write(LOADED, { "config.yaml": moved });
    return this.engine.call("load", { role });
  }

  // Returns the run and the data files that its config names, whose paths there become relative.
  save() {
    const answer = this.engine.call("save");
    if (answer.error) return answer;
    const { engine } = this;
    const files = engine.read(answer.directory, "run/");
    const read = (name) => new TextDecoder().decode(files[name]);
    const changes = "run/metrics.jsonl" in files ? changesIn(read("run/metrics.jsonl")) : [];
    const said = changes.map(({ step, key, from, to }) => `# ${key} was ${from} up to step ${step}, then ${to}.\n`);
    const text = read("run/config.yaml");
    const named = /^( +(?:\w+_)?file: ("?))\/lab\/([^"\n]+)\2$/gm;
    for (const [, , , name] of text.matchAll(named)) files[name] = engine.lab.FS.readFile(`${FILES}/${name}`);
    files["run/config.yaml"] = new TextEncoder().encode(said.join("") + text.replaceAll(named, "$1../$3$2"));
    return { files, name: "run" };
  }
}

// Answers the page, which starts with {wasm, index, ports}.
export function serve(scope) {
  let worker = null;
  const result = async ({ wasm, index, ports, request }) => {
    if (!wasm) return worker.enqueue(() => worker.answer(request));
    worker = new Worker(await Engine.make(wasm), index, ports);
    return worker.engine.call("about");
  };
  scope.onmessage = async ({ data }) => {
    const failed = (error) => failure("internal", String(error?.message ?? error));
    scope.postMessage({ id: data.id, result: await result(data).catch(failed) });
  };
}

serve(self);
