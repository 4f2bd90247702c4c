// The engine of the lab in Node, compared with the native program on an instruction set of the same arithmetic.
// Usage: node --test tests/addons/lab/, after scripts/lab.sh; $THIMBLE is the native program.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { withLab } from "./node_lab.mjs";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const thimble = process.env.THIMBLE ?? join(root, "build/release/thimble");
const folder = mkdtempSync(join(tmpdir(), "lab-"));
after(() => rmSync(folder, { recursive: true }));

const config = (name) => readFileSync(join(root, "configs", `${name}.yaml`), "utf8");
// Those of tests/scripts/bits_test.sh.
const short = [
  "train.steps=200",
  "train.schedule.warmup=20",
  "train.evaluate_every=200",
  "train.checkpoint_every=0",
  "data.validation=8",
  "data.test=8",
];
const separate = (name) =>
  readFileSync(join(root, "tests/bits/hashes.txt"), "utf8").match(new RegExp(`^configs/${name}\\.yaml +\\S+ (\\S+)$`, "m"))[1];

// Returns what the native program writes.
function native(...command) {
  try {
    const env = { ...process.env, THIMBLE_TARGET: "sse4" };
    return execFileSync(thimble, command, { cwd: folder, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 28 });
  } catch (error) {
    if (error.status !== 1) throw new Error(error.stderr || error.message);
    return error.stdout;
  }
}

function writeFiles(files, to = folder) {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(to, name)), { recursive: true });
    writeFileSync(join(to, name), content);
  }
}

const summary = (run) => JSON.parse(readFileSync(join(folder, run, "summary.json"), "utf8"));

test("200 steps end with the weights of the native program, for any number of workers", async () => {
  const configs = ["reverse", "sort", "induction", "translation", "translation_recurrent", "masked", "dates"];
  for (const workers of [1, 2, 3])
    await withLab(workers, async (lab, call) => {
      for (const name of workers === 1 ? configs : ["reverse", "translation"]) {
        await call("open", { yaml: config(name), overrides: short });
        const { stopped, step } = await call("step", { steps: 1000 });
        assert.deepEqual([stopped, step], ["last step", 200]);
        assert.equal((await call("hash")).weights_hash, separate(name), `${name}, ${workers} workers`);
      }
    });
});

test("a saved run is resumed by the native program and ends with the same weights", async () => {
  writeFiles({ "data.tsv": Array.from({ length: 400 }, (_, i) => `${i % 7} x ${i % 11}\t${(i % 7) + (i % 11)} y z\n`).join("") });
  const own =
    "task: {name: file, file: data.tsv}\nmodel: {d_model: 16, d_ff: 16, output: {per: position}}\n" +
    "train: {steps: 60, batch: 16, log_heads: true, evaluate_every: 20}\n";
  const names = readFileSync(join(root, "configs/data/names.txt"));
  writeFiles({ "own.yaml": own, "plain.yaml": config("sort"), "names.yaml": config("names"), "data/names.txt": names });
  const short = ["train.steps=60", "data.validation=64", "data.test=64", "train.log_heads=true"];
  for (const [name, yaml, files, overrides] of [
    ["own", own, { "data.tsv": readFileSync(join(folder, "data.tsv")) }, []],
    ["plain", config("sort"), {}, short],
    ["names", config("names"), { "data/names.txt": names }, ["train.steps=60"]],
    ["names", config("names"), { "data/names.txt": names }, ["train.steps=60", "task.documents=stream"]],
  ]) {
    ["whole", "saved"].forEach((run) => rmSync(join(folder, `${name}-${run}`), { recursive: true, force: true }));
    native("train", `${name}.yaml`, ...overrides, "--out", `${name}-whole`, "--quiet");
    await withLab(2, async (lab, call) => {
      await call("open", { yaml, files, overrides });
      await call("step", { steps: 33 });
      const saved = await call("save");
      writeFiles(saved.files, join(folder, `${name}-saved`));
      native("train", `${name}-saved/${saved.name}`, "--resume", "--quiet");
      const whole = summary(`${name}-whole`).weights_hash;
      assert.equal(summary(`${name}-saved/${saved.name}`).weights_hash, whole, name);

      // The lab itself resumes it too, and a run that the native program has saved.
      assert.equal((await call("load", { files: saved.files })).step, 33);
      await call("step", { steps: 1000 });
      assert.equal((await call("hash")).weights_hash, whole, name);
    });
  }
});

test("heads, ablations and traces are those of the native program", async () => {
  for (const [name, input] of [
    ["induction", null],
    ["translation", null],
  ]) {
    const overrides = ["train.steps=40", "train.schedule.warmup=10", "data.validation=64", "data.test=200"];
    writeFiles({ [`${name}.yaml`]: config(name) });
    native("train", `${name}.yaml`, ...overrides, "--out", `${name}-run`, "--quiet");
    await withLab(1, async (lab, call) => {
      await call("open", { yaml: config(name), overrides });
      await call("step", { steps: 1000 });
      const run = `${name}-run`,
        read = (command, ...given) => JSON.parse(native(command, run, ...given, "--json", "-", "--quiet"));

      const heads = name === "induction" ? ["0.0", "1.0"] : ["encoder.0.0", "cross.0.1"];
      assert.deepEqual(await call("ablate", { heads, sequences: 200 }), read("ablate", heads.join(","), "--sequences", "200"));

      const [example] = await call("examples", { split: "test", count: 1 });
      const text = (example.source ?? example.tokens).join(" ");
      assert.deepEqual(await call("trace", { input: text }), read("trace", text));

      const here = await call("inspect", { sequences: 64 }),
        there = read("inspect", "--sequences", "64");
      const scores = ({ heads }) => heads.map(({ scores, ablation, importance, label }) => ({ scores, ablation, importance, label }));
      assert.deepEqual(scores(here), scores(there));
      assert.equal(here.weights_hash, there.weights_hash);
    });
  }
});

test("interventions act in one pass", async () => {
  await withLab(1, async (lab, call) => {
    await call("open", { yaml: config("induction"), overrides: ["train.steps=60", "data.validation=64", "data.test=64"] });
    await call("step", { steps: 60 });
    const [a, b] = (await call("examples", { split: "test", count: 2 })).map(({ tokens }) => tokens.join(" "));
    const plain = await call("trace", { input: a, vectors: [{ head: "0.0", token: 3 }] });
    const [{ query, key, dots, scale }] = plain.vectors;
    assert.equal(query.length, key.length);
    assert.ok(Math.abs(dots[3] - query.reduce((sum, x, i) => sum + x * key[i], 0)) < 1e-9);
    // Without what positions add, the weights of a causal row are the softmax of the products.
    const exps = dots.slice(0, 4).map((dot) => Math.exp(scale * dot)),
      sum = exps.reduce((x, y) => x + y);
    exps.forEach((x, k) => assert.ok(Math.abs(x / sum - plain.attention[0][0][3][k]) < 1e-5));

    const ablated = await call("trace", { input: a, ablate: ["0.0"] });
    assert.notDeepEqual(ablated.logits, plain.logits);
    const same = await call("trace", { input: a, patch: [{ head: "0.0", input: a }] });
    assert.deepEqual(same.logits, plain.logits);
    const other = await call("trace", { input: a, patch: [{ head: "0.0", input: b }] });
    assert.notDeepEqual(other.logits, plain.logits);
    const weights = plain.attention[1][0][5].map((_, k) => Number(k === 0));
    const edited = await call("trace", { input: a, attention: [{ head: "1.0", query: 5, weights }] });
    assert.deepEqual(edited.attention[1][0][5], weights);
    assert.notDeepEqual(edited.logits[5], plain.logits[5]);
    assert.deepEqual(edited.logits[4], plain.logits[4]);

    const { steps } = await call("history");
    assert.deepEqual(steps.slice(0, 4), [0, 1, 2, 3]);
    assert.notDeepEqual((await call("trace", { input: a, at: 0 })).logits, plain.logits);
    assert.deepEqual((await call("trace", { input: a })).logits, (await call("trace", { input: a, at: 60 })).logits);
    assert.notDeepEqual((await call("scores", { at: 0 })).heads, (await call("scores")).heads);
  });
});

test("problems of a config are those of the native program, at the same keys", async () => {
  const bad = "task: {name: revers, length: 16.5}\nmodel:\n  d_model: 32\n  heads: 5\n  hedas: 2\ntrain: {steps: 0, optimizer: {lr: -1}}\n";
  writeFiles({ "bad.yaml": bad });
  await withLab(1, async (lab) => {
    const { error } = await lab.call("resolve", { yaml: bad });
    let message;
    try {
      native("config", "show", "bad.yaml");
    } catch (found) {
      message = found.message;
    }
    const lines = error.problems.map(({ key, line, column, message }) => `bad.yaml:${line}:${column}: ${key}: ${message}`);
    for (const line of lines) assert.ok(message.includes(line), `${line}\nis not in\n${message}`);
    assert.equal(lines.length, message.match(/^\s*bad\.yaml:\d/gm).length);

    for (const [yaml, kind] of [
      ["a: [", "config"],
      ["train: *x", "config"],
      ["\tx: 1", "config"],
      ["", "config"],
      ["task: {name: file}", "config"],
      ["model: {d_model: 4096, layers: 64}", "config"],
    ]) {
      const { error } = await lab.call("open", { yaml });
      assert.equal(error?.kind, kind, yaml);
      assert.ok(error.message.length > 0 && !error.message.includes("internal"));
    }
    assert.equal((await lab.call("step")).error.kind, "config");
    assert.equal((await lab.call("nonsense")).error.kind, "config");
  });
});

test("a run changes its learning rate, refuses other changes, and diverges without harm", async () => {
  await withLab(2, async (lab, call) => {
    const open = (lr) =>
      call("open", { yaml: config("reverse"), overrides: [`train.optimizer.lr=${lr}`, "data.validation=64", "data.test=64"] });
    await open(0.25);
    const faster = (await call("step", { steps: 5 })).reports.slice(3);
    await open(0.0005);
    await call("step", { steps: 3 });
    assert.equal((await call("set", { key: "train.optimizer.lr", value: 0.25 })).step, 3);
    const { reports } = await call("step", { steps: 2 });
    assert.deepEqual(
      reports.map(({ step, learning_rate }) => [step, learning_rate]),
      faster.map(({ step, learning_rate }) => [step, learning_rate]),
    );
    assert.equal((await lab.call("set", { key: "model.d_model", value: 64 })).error.kind, "config");
    assert.equal((await lab.call("step", { steps: 1 })).step, 6);

    await call("open", {
      yaml: config("reverse"),
      overrides: [
        "train.optimizer.name=sgd",
        "train.optimizer.lr=100",
        "train.optimizer.weight_decay=100",
        "train.clip_norm=0",
        "train.schedule.warmup=0",
        "data.validation=8",
        "data.test=8",
      ],
    });
    const { error } = await lab.call("step", { steps: 2000 });
    assert.equal(error.kind, "numeric");
    await call("hash");
  });
});

test("a changed learning rate acts in a native run that goes on, and the run says so", async () => {
  const overrides = ["train.steps=50", "data.validation=64", "data.test=64", "train.evaluate_every=10"];
  const decoded = (files, name) => new TextDecoder().decode(files[name]);
  const changes = (files) =>
    decoded(files, "run/metrics.jsonl")
      .trim()
      .split("\n")
      .map(JSON.parse)
      .filter(({ split }) => split === "change")
      .map(({ step, key, from, to }) => [step, key, from, to]);
  const finished = (files, name) => {
    writeFiles(files, join(folder, name));
    native("train", `${name}/run`, "--resume", "--quiet");
    return summary(`${name}/run`).weights_hash;
  };
  for (const workers of [1, 2])
    await withLab(workers, async (lab, call) => {
      const rate = (value) => call("set", { key: "train.optimizer.lr", value });
      await call("open", { yaml: config("reverse"), overrides });
      await call("step", { steps: 20 });
      const before = await call("history");
      const past = await call("scores", { at: 5 });
      await rate(0.1);
      const run = await rate(0.004);
      assert.deepEqual([run.step, run.config.train.optimizer.lr], [20, 0.004]);
      assert.deepEqual(await call("history"), before);
      assert.deepEqual(await call("scores", { at: 5 }), past);
      const at20 = (await call("save")).files;
      await call("step", { steps: 10 });
      const { files } = await call("save");
      await call("step", { steps: 1000 });
      const expected = (await call("hash")).weights_hash;
      assert.equal(finished(at20, `rate-20-${workers}`), expected, `${workers} workers`);
      assert.equal(finished(files, `rate-30-${workers}`), expected);
      writeFiles({ [`rate-${workers}.yaml`]: config("reverse") });
      native("train", `rate-${workers}.yaml`, ...overrides, "--out", `plain-${workers}`, "--quiet");
      assert.notEqual(summary(`plain-${workers}`).weights_hash, expected);

      const key = "train.optimizer.lr";
      assert.deepEqual(changes(files), [
        [20, key, 0.0005, 0.1],
        [20, key, 0.1, 0.004],
      ]);
      assert.ok(decoded(files, "run/config.yaml").startsWith("# train.optimizer.lr was 0.0005 up to step 20, then 0.004.\n"));

      // A value that is taken back has not changed.
      await call("load", { files });
      await rate(0.25);
      await rate(0.004);
      const again = (await call("save")).files;
      assert.equal(decoded(again, "run/config.yaml").match(/^# train.optimizer.lr was/gm).length, 1);
    });
});

test("a log that was edited goes on as it is, also where a line is no JSON", async () => {
  await withLab(1, async (lab, call) => {
    const overrides = ["train.steps=20", "train.schedule.warmup=0", "data.validation=64", "data.test=64"];
    await call("open", { yaml: config("reverse"), overrides });
    await call("step", { steps: 5 });
    const { files } = await call("save");
    const text = new TextDecoder().decode(files["run/metrics.jsonl"]).replace(/"loss":\d/, '"loss":9') + '{"split":"change",\n';
    const changed = { ...files, "run/metrics.jsonl": new TextEncoder().encode(text) };
    const run = await call("load", { files: changed });
    assert.equal(run.step, 5);
    assert.equal(run.warnings, undefined);
    const again = (await call("save")).files;
    assert.ok(new TextDecoder().decode(again["run/metrics.jsonl"]).startsWith(text));
  });
});

test("weights of earlier steps stay within their budget, and the steps are spread over the run", async () => {
  const kBudget = 64 << 20;
  await withLab(1, async (lab, call) => {
    const yaml =
      "task: {name: reverse, length: 4}\nmodel: {d_model: 352, layers: 2, d_ff: 704}\ndata: {validation: 1, test: 1}\n" +
      "train: {steps: 320, batch: 1, shards: 1, evaluate_every: 320, optimizer: {lr: 1e-5}}\n";
    await call("open", { yaml });
    const fitting = Math.floor(kBudget / (await call("history")).bytes);
    assert.ok(fitting >= 6 && fitting <= 10, `${fitting} fit`);
    const first = await call("scores", { at: 0 });
    for (let step = 20; step <= 320; step += 20) {
      await call("step", { steps: 20 });
      const { steps, bytes } = await call("history");
      assert.ok(bytes <= kBudget, `${bytes} bytes at step ${step}`);
      assert.equal(steps[0], 0);
      if (steps.length < fitting) continue;
      // No gap is more than twice as long as among steps that are spread evenly, in the logarithm of step + 1.
      const even = Math.log(steps.at(-1) + 1) / (steps.length - 1);
      steps.slice(1).forEach((later, i) => {
        const gap = Math.log((later + 1) / (steps[i] + 1));
        assert.ok(gap <= 2 * even, `no step between ${steps[i]} and ${later}, of ${steps}`);
      });
    }
    const { steps } = await call("history");
    assert.equal(steps.length, fitting);
    assert.deepEqual([steps[0], steps.at(-1)], [0, 320]);
    assert.deepEqual(await call("scores", { at: 0 }), first);
    assert.deepEqual((await call("scores", { at: 320 })).heads, (await call("scores")).heads);
    for (const at of steps) await call("trace", { input: "1 2 3 4", at });
    const dropped = [1, 2, 3, 10, 100].find((step) => !steps.includes(step));
    const { error } = await lab.call("trace", { input: "1 2 3 4", at: dropped });
    assert.deepEqual(
      [error.kind, error.message],
      ["config", `at: there are no weights of step ${dropped}; choose one of ${steps.join(", ")}`],
    );
  });
});

test("gradients are right, and tokens of any kind are harmless", async () => {
  await withLab(1, async (lab, call) => {
    const tokens = ["<b>", "&amp;", '"', "'", "\\", "</script>", "\u202e", "\u200f", "{{", "`", "${x}", "日本", "🧵", "-", "%s", "\u00a0x"];
    const data = Array.from({ length: 300 }, (_, i) => {
      const [a, b] = [tokens[i % tokens.length], tokens[(i * 7) % tokens.length]];
      return `${a} ${b} ${i % 23}\t${b}\n`;
    }).join("");
    const yaml = "task: {name: file, file: own.tsv}\nmodel: {d_model: 8, d_ff: 8, output: {per: sequence}}\ntrain: {steps: 5, batch: 8}\n";
    const run = await call("open", { yaml, files: { "own.tsv": data } });
    for (const token of tokens) assert.ok(run.vocabulary.includes(token), token);
    await call("step", { steps: 5 });
    const checks = await call("gradcheck");
    assert.ok(checks.length > 5 && checks.every(({ verdict }) => verdict === "ok"));
    const { error } = await lab.call("open", { yaml, files: { "own.tsv": "a\tb\n\nc\td\n" } });
    assert.equal(error.kind, "data");
    assert.match(error.message, /own\.tsv:2/);
  });
});
