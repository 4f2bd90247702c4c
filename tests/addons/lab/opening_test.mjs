// What the engine of the lab opens and saves, in Node.
// Usage: node --test tests/addons/lab/opening_test.mjs, after scripts/lab.sh.
import assert from "node:assert/strict";
import { test } from "node:test";
import { start, withLab } from "./node_lab.mjs";

const kPairs = Array.from({ length: 300 }, (_, i) => `${i} x\t${i % 5}\n`).join("");
const kOwn = "task: {name: file, file: own.tsv}\nmodel: {d_model: 8, d_ff: 8, output: {per: sequence}}\ntrain: {steps: 9, batch: 8}\n";
const kSort =
  "task: {name: sort, length: 5}\nmodel: {d_model: 8, d_ff: 8}\ntrain: {steps: 40, batch: 8}\ndata: {validation: 16, test: 16}\n";

const flipped = (bytes, at) => {
  const other = bytes.slice();
  other[at] ^= 1;
  return other;
};

// Saves a run of so many steps, whose newest checkpoints are those of `steps`.
async function saved(call, yaml, steps, files = {}) {
  await call("open", { yaml, files });
  let made = 0;
  let run;
  for (const step of steps) {
    await call("step", { steps: step - made });
    made = step;
    run = await call("save");
  }
  return run.files;
}

test("a damaged checkpoint is refused, and the open run stays", async () => {
  for (const workers of [1, 2])
    await withLab(workers, async (lab, call) => {
      const files = await saved(call, kSort, [7]);
      const name = "run/checkpoints/step-7.safetensors";
      assert.ok(name in files, Object.keys(files).join());
      await call("open", { yaml: kSort.replace("sort", "reverse") });
      await call("step", { steps: 2 });
      const { weights_hash: hash } = await call("hash");
      const size = files[name].length;
      for (const at of [0, 9, 100, 500, size >> 1, size - 1]) {
        const { error } = await lab.call("load", { files: { ...files, [name]: flipped(files[name], at) } });
        assert.equal(error?.kind, "data", `byte ${at}`);
        assert.match(error.message, /^no checkpoint of the run is intact: .*step-7\.safetensors/);
        assert.deepEqual(await call("hash"), { weights_hash: hash, step: 2 });
      }
      assert.equal((await call("step", { steps: 1 })).step, 3);
      assert.equal((await call("load", { files })).warnings, undefined);
    });
});

test("a run falls back to an older checkpoint with a warning", async () => {
  await withLab(1, async (lab, call) => {
    const files = await saved(call, kSort, [3, 7]);
    const name = "run/checkpoints/step-7.safetensors";
    const run = await call("load", { files: { ...files, [name]: flipped(files[name], files[name].length - 1) } });
    assert.equal(run.step, 3);
    assert.equal(run.warnings.length, 1);
    assert.match(run.warnings[0], /step-7\.safetensors: .*; this is the checkpoint before it$/);
  });
});

test("sequences that training and test share are a warning, as in the native program", async () => {
  await withLab(1, async (lab, call) => {
    const few = "task: {name: sort, length: 2, symbols: 3}\ntrain: {steps: 3, batch: 8}\ndata: {validation: 16, test: 16}\n";
    const { warnings } = await call("open", { yaml: few });
    assert.match(warnings?.join("\n") ?? "", /^\d+ validation sequences also occur in the training split: .*\n^\d+ test sequences/m);
    assert.equal((await call("open", { yaml: kSort.replace("length: 5", "length: 12") })).warnings, undefined);
  });
});

test("an archive holds the run and the data that its config names, and nothing else", async () => {
  await withLab(2, async (lab, call) => {
    const others = (files) => Object.keys(files).filter((name) => !name.startsWith("run/"));
    const own = await saved(call, kOwn, [2], { "own.tsv": kPairs, "secret.tsv": "a\tb\n" });
    assert.deepEqual(others(own), ["own.tsv"]);
    // Another config, checked and opened in the same workers.
    await call("resolve", { yaml: kOwn.replace("own.tsv", "new.tsv"), files: { "new.tsv": kPairs } });
    const plain = await saved(call, kSort, [1], { "secret.tsv": "a\tb\n" });
    assert.deepEqual(others(plain), []);
    // An archive with files that are none of a run.
    await call("load", {
      files: { ...plain, "run/notes.txt": "x", "run/deep/er/notes.json": "{}", "run/checkpoints/x.tmp": "x", "diary.txt": "x" },
    });
    const again = await call("save");
    assert.deepEqual(Object.keys(again.files).sort(), Object.keys(plain).sort());
    // Data below a folder come back with the run.
    await call("open", { yaml: kOwn.replace("own.tsv", "data/own.tsv"), files: { "data/own.tsv": kPairs } });
    const { files } = await call("save");
    assert.deepEqual(others(files), ["data/own.tsv"]);
    assert.match(new TextDecoder().decode(files["run/config.yaml"]), /file: \.\.\/data\/own\.tsv$/m);
    assert.equal((await call("load", { files })).step, 0);
    assert.deepEqual(others((await call("save")).files), ["data/own.tsv"]);
  });
});

test("a call that takes long can be stopped", async () => {
  const lab = await start(2);
  const begin = performance.now();
  const huge = lab.call("open", { yaml: "task: {name: sort, length: 12}\ndata: {validation: 3000000}\n" });
  await new Promise((done) => setTimeout(done, 500));
  lab.close();
  const stopped = { error: { kind: "stopped", message: "stopped", problems: [] } };
  assert.deepEqual([await huge, await lab.call("about")], [stopped, stopped]);
  assert.ok(performance.now() - begin < 10_000);
});
