// The client of the workers, with workers that answer as the tests say.
import assert from "node:assert/strict";
import { test } from "node:test";

import { startLab } from "../../../src/addons/lab/client.js";

// Starts two workers that answer by answer(index, request); no answer for null.
async function fakeLab(answer) {
  const workers = [];
  const makeWorker = () => {
    const index = workers.length;
    const worker = {
      ended: false,
      postMessage: ({ id, request }) => {
        const result = request ? answer(index, request) : {};
        if (result) queueMicrotask(() => worker.onmessage({ data: { id, result } }));
      },
      terminate: () => (worker.ended = true),
    };
    workers.push(worker);
    return worker;
  };
  const wasm = Uint8Array.from([0, 97, 115, 109, 1, 0, 0, 0]).buffer;
  return { lab: await startLab({ makeWorker, wasm, workers: 2 }), workers };
}

const stopped = { error: { kind: "stopped", message: "stopped", problems: [] } };

test("workers can be ended in the middle of a call", async () => {
  const { lab, workers } = await fakeLab((index, { method }) => (method === "step" ? null : { step: 0 }));
  assert.deepEqual(await lab.call("open"), { step: 0 });
  const waiting = [lab.call("step"), lab.call("hash")];
  await Promise.resolve();
  lab.close();
  assert.deepEqual(await Promise.all(waiting), [stopped, stopped]);
  assert.deepEqual(await lab.call("hash"), stopped);
  assert.ok(workers.every(({ ended }) => ended));
});

test("workers whose sessions differ make no step", async () => {
  for (const fails of ["open", "load", "save"]) {
    const bad = { error: { kind: "memory", message: "not enough memory", problems: [] } };
    const { lab, workers } = await fakeLab((index, { method }) =>
      method === fails && (index === 1 || fails === "save") ? bad : { step: 0 },
    );
    const failed = { error: { kind: "failed", message: "not enough memory", problems: [] } };
    assert.deepEqual(await lab.call(fails === "open" ? "open" : "set"), failed);
    assert.deepEqual(await lab.call("step"), failed);
    assert.ok(workers.every(({ ended }) => ended));
  }
});

test("a worker that fails ends all of them", async () => {
  const { lab, workers } = await fakeLab((index, { method }) => (method === "step" ? null : {}));
  const step = lab.call("step");
  await new Promise((done) => setTimeout(done));
  workers[1].onerror({ message: "out of memory" });
  const failed = { error: { kind: "failed", message: "the worker failed: out of memory", problems: [] } };
  assert.deepEqual([await step, await lab.call("hash")], [failed, failed]);
  workers[0].onmessage({ data: { id: 99, result: {} } });
});
