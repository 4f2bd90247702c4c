// The functions of the page of the lab that need neither a browser nor the engine.
// Usage: node --test tests/addons/lab/page_test.mjs; those of YAML are skipped unless scripts/lab.sh has
// installed its libraries.
import assert from "node:assert/strict";
import { register } from "node:module";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";

import { PageError, explained } from "../../../src/addons/lab/page/errors.js";
import { fragmentOf, read } from "../../../src/addons/lab/page/link.js";
import { hasPairs, isData, keysOf, pieces } from "../../../src/addons/lab/page/pairs.js";
import { extended, kNoCurve, past, take } from "../../../src/addons/lab/page/progress.js";

const npm = new URL("../../../build/lab/npm/package.json", import.meta.url).href;
register(
  `data:text/javascript,${encodeURIComponent(
    `export const resolve = (name, context, next) => next(name, name === "yaml" ? { ...context, parentURL: ${JSON.stringify(npm)} } : context);`,
  )}`,
);
const page = await import("../../../src/addons/lab/page/document.js").catch(() => null);
const yamlTest = (name, run) => test(name, { skip: page ? false : "yaml is not installed; scripts/lab.sh installs it" }, run);

const refused = (pattern) => (error) => error instanceof PageError && pattern.test(error.message);

// A run of so many steps, whose loss at step s is s and whose accuracy is 1 / s, as the page receives it.
function trained(steps, chunk) {
  let state = { curves: { train: kNoCurve, validation: kNoCurve }, snapshots: [], rate: null };
  for (let step = 0; step < steps;) {
    const reports = Array.from({ length: Math.min(chunk, steps - step) }, () => ({ step: ++step, loss: step, accuracy: 1 / step }));
    const validations = step % 1000 === 0 ? [{ step, loss: 2 * step, accuracy: 0.5 }] : [];
    Object.assign(state, take(state, { step, reports, validations, heads: [], seconds: 1, sequences: 8 * reports.length }));
  }
  return state;
}

test("a curve has means of buckets of equal width, from the first step to the last", () => {
  for (const steps of [100, 480, 481, 20_000, 200_000])
    for (const chunk of steps < 1000 ? [1, 37] : [50, 997]) {
      const { train } = trained(steps, chunk).curves;
      const { width, points } = train;
      assert.ok(points.length <= 480 && points.length >= Math.min(steps, 240), `${points.length} points of ${steps} steps`);
      assert.equal(points.length, Math.ceil(steps / width));
      points.forEach(([step, loss, accuracy, count], i) => {
        const [first, last] = [i * width + 1, Math.min((i + 1) * width, steps)];
        assert.deepEqual([step, count], [last, last - first + 1], `bucket ${i} of ${steps} steps`);
        assert.ok(Math.abs(loss - (first + last) / 2) < 1e-6 * last, `mean loss ${loss} of steps ${first} to ${last}`);
        let sum = 0;
        for (let s = first; s <= last; ++s) sum += 1 / s;
        assert.ok(Math.abs(accuracy - sum / count) < 1e-9);
      });
      assert.deepEqual(train.last.slice(0, 3), [steps, steps, 1 / steps], "the newest report is as it was");
    }
});

test("an answer of the engine is taken over without a change to what was there", () => {
  const before = {
    curves: { train: extended(kNoCurve, [{ step: 1, loss: 2, accuracy: 0 }]), validation: kNoCurve },
    snapshots: [],
    rate: null,
  };
  const copy = structuredClone(before);
  const heads = [{ step: 2, heads: [] }];
  const reports = [{ step: 2, loss: 1, accuracy: 0.5 }];
  const now = take(before, { step: 2, reports, validations: [], heads, stopped: "target", seconds: 0.5, sequences: 4 });
  assert.deepEqual(before, copy);
  assert.deepEqual([now.step, now.stopped, now.snapshots, now.rate], [2, "target", heads, { steps: 2, sequences: 8 }]);
  assert.deepEqual(now.curves.train.last, [2, 1, 0.5, 1]);
  const later = take({ ...before, ...now }, { step: 3, reports, validations: [], heads: [], seconds: 0.1, sequences: 1 });
  assert.deepEqual([later.rate.steps, later.stopped], [0.8 * 2 + 0.2 * 10, ""]);
  assert.deepEqual(take(now, { step: 3, reports: [], validations: [], heads: [], seconds: 0, sequences: 0 }).rate, now.rate);
});

test("the past of a run ends at its checkpoint, and a damaged line is left out", () => {
  const line = (split, step, more = {}) => JSON.stringify({ step, split, loss: step / 2, accuracy: 0.25, seconds: 1, ...more });
  const lines = [
    line("heads", 0, { heads: [] }),
    line("train", 1),
    line("train", 2),
    line("validation", 2),
    line("test", 2),
    line("train", 3),
  ];
  const text = `${lines.join("\n")}\n`;
  const { curves, snapshots } = past(text, 2);
  assert.deepEqual(curves.train.points, [
    [1, 0.5, 0.25, 1],
    [2, 1, 0.25, 1],
  ]);
  assert.deepEqual([curves.validation.last.slice(0, 2), snapshots.length], [[2, 1], 1]);
  assert.deepEqual(past("", 0).curves.train, kNoCurve);
  assert.equal(past(`${text}{"step":4,"split":"tr`, 9).curves.train.last[0], 3, "an incomplete last line is left out");
  const long = Array.from({ length: 30_000 }, (_, i) => line("train", i + 1)).join("\n");
  assert.ok(past(`${long}\n`, 30_000).curves.train.points.length <= 480);
  for (const bad of [
    "{",
    "}",
    "",
    "null",
    "[]",
    "7",
    line("train", 2).slice(1),
    line("train", "2"),
    line("train", 2, { loss: null }),
    line("heads", 2),
  ])
    assert.deepEqual(past([lines[1], bad, lines[5], ""].join("\r\n"), 3), past([lines[1], lines[5]].join("\n"), 3), bad);
});

test("pairs are cut at the arrow that the first line has, where it has no tab", () => {
  const arrow = (name, text) => keysOf(name, text)["task.separator"];
  assert.deepEqual(keysOf("a.tsv", "a\tb\n"), { "task.file": "a.tsv" });
  assert.deepEqual(keysOf("a.tsv", "a b -> c\n"), { "task.file": "a.tsv", "task.separator": "->" });
  assert.equal(arrow("a.TXT", "\ufeff\n \t\n a → b -> c\nd\te"), "→");
  for (const [name, text] of [
    ["a.tsv", "a -> b\tc\nd -> e"],
    ["a.tsv", "a b\nc -> d"],
    ["a.tsv", ""],
    ["a.csv", "a -> b,c"],
    ["a.jsonl", '{"input": "a -> b", "target": "c"}'],
    ["a.conllu", "# a -> b"],
  ])
    assert.equal(arrow(name, text), undefined, text);
});

test("a text of pairs is told from one that goes on, and a byte order mark is no part of it", () => {
  assert.ok(hasPairs("\ufeff\n a -> b") && hasPairs("a\tb") && hasPairs("a→b") && !hasPairs("a b\nc -> d") && !hasPairs(""));
  assert.deepEqual(JSON.parse(pieces(`\ufeff${"abcd".repeat(4)}`, "letters")[0]), { input: "abcdabcd", target: "abcdabcd" });
  assert.deepEqual(JSON.parse(pieces("a  b\n".repeat(8), "words")[0]), { input: "a b a b a b a b", target: "a b a b a b a b" });
  assert.deepEqual(pieces("abcd", "letters"), []);
  for (const name of ["a.tsv", "b.CSV", "c.jsonl", "d.conllu", "e.txt", "f.conll"]) assert.ok(isData(name), name);
  for (const name of ["a.yaml", "tsv", "a.tsv.gz", "a.json"]) assert.ok(!isData(name), name);
});

test("a link holds config and data, and is read as it was written", async () => {
  for (const [yaml, own] of [
    ["task: {name: reverse}\n", {}],
    ["# é 😀\n", { "pasted.tsv": "a\tb\n", "x-1.jsonl": "{}", "verbs (1).csv": "a,b\n" }],
    ["x".repeat(150_000), { "long.txt": "y".repeat(800_000) }],
  ])
    assert.deepEqual(await read(await fragmentOf(yaml, own)), { yaml, own });
  assert.equal(await read(""), null);
  assert.equal(await read("#training"), null);
});

const linkOf = (json) => `#lab=${deflateRawSync(typeof json === "string" ? json : JSON.stringify(json)).toString("base64url")}`;

test("a link that cannot be read again is not written: both sides count the raw bytes", async () => {
  const large = "a\tb\n".repeat(300_000); // 1.2 MB, and a few kB when deflated
  await assert.rejects(fragmentOf("", { "pasted.tsv": large }), refused(/too large for a link/));
  await assert.rejects(read(linkOf({ yaml: "", own: { "pasted.tsv": large } })), refused(/unfolds to more than 1048576 bytes/));
  const random = Array.from({ length: 300_000 }, (_, i) => String.fromCharCode(97 + ((i * i * 31 + (i >> 3)) % 26))).join("");
  const noise = await fragmentOf("", { "pasted.txt": random }).catch((error) => error);
  assert.ok(noise instanceof PageError || (await read(noise)));
  await assert.rejects(fragmentOf("", { "data/x.tsv": "" }), refused(/^data\/x\.tsv cannot be in a link/));
  await assert.rejects(fragmentOf("", { "base.yaml": "" }), refused(/^base\.yaml cannot be in a link/));
  const five = Object.fromEntries([1, 2, 3, 4, 5].map((n) => [`${n}.tsv`, ""]));
  await assert.rejects(fragmentOf("", five), refused(/holds 4 files, not 5/));
});

test("links that are damaged or hold something else are refused in the page's words", async () => {
  const whole = await fragmentOf("task: {name: reverse}\n", { "a.tsv": "a\tb\n" });
  for (const [fragment, pattern] of [
    ["#lab=", /cut off or changed/],
    ["#lab=AAAA", /cut off or changed/],
    ["#lab=%00", /cut off or changed/],
    ["#lab=a", /cut off or changed/],
    [whole.slice(0, -9), /cut off or changed/],
    [`#lab=${"A".repeat(200_000)}`, /more than 200000 characters/],
    [linkOf("{"), /holds no config/],
    [linkOf("null"), /holds no config/],
    [linkOf("[]"), /holds no config/],
    [linkOf("7"), /holds no config/],
    [linkOf({ own: {} }), /holds no config/],
    [linkOf({ yaml: 7 }), /holds no config/],
    [linkOf({ yaml: "", own: 7 }), /a file that is not data/],
    [linkOf({ yaml: "", own: ["a"] }), /a file that is not data/],
    [linkOf({ yaml: "", own: { "../a.tsv": "" } }), /a file that is not data/],
    [linkOf({ yaml: "", own: { "a.html": "" } }), /a file that is not data/],
    [linkOf({ yaml: "", own: { "a.tsv": 7 } }), /a file that is not data/],
  ])
    await assert.rejects(read(fragment), refused(pattern), fragment.slice(0, 60));
  assert.deepEqual((await read(linkOf({ yaml: "x", own: null }))).own, {});
});

yamlTest("a change keeps comments and layout", () => {
  const { changed } = page;
  assert.equal(
    changed("# top\ntask: {name: sort} # why\ntrain:\n  steps: 5 # few\n", "train.steps", 7),
    "# top\ntask: {name: sort} # why\ntrain:\n  steps: 7 # few\n",
  );
  assert.equal(changed("", "train.steps", 7), "train:\n  steps: 7\n");
  assert.equal(changed("# only\n", "train.steps", 7), "# only\n\ntrain:\n  steps: 7\n");
  assert.equal(changed("train:\n", "train.optimizer.lr", 0.5), "train:\n  optimizer:\n    lr: 0.5\n");
  assert.equal(changed("train: ~\n", "train.steps", 7), "train:\n  steps: 7\n");
});

yamlTest("numbers and texts are written as the program writes them, and others stay as they are", () => {
  const { changed } = page;
  const of = (value) => changed("a: {b: 0}\n", "a.b", value).slice("a: {b: ".length, -"}\n".length);
  for (const [value, text] of [
    [1e-7, "1.0e-07"],
    [1.5e-7, "1.5e-07"],
    [0.00001, "1.0e-05"],
    [0.0001, "0.0001"],
    [3e-300, "3.0e-300"],
    [1e21, "1.0e+21"],
    [1e15, "1000000000000000"],
    [12345678901234567890n, "12345678901234567890"],
    [0, "0"],
    ["all", "all"],
    ["no", '"no"'],
    ["1:30", '"1:30"'],
    ["  ", '"  "'],
    ["->", "->"],
  ])
    assert.equal(of(value), text);
  const others = "a: {b: 0, c: 2.0e-3, d: 5e-4, e: 0x1F, f: 1.50, g: .inf}\n";
  assert.equal(changed(others, "a.b", 1e-9), others.replace("0,", "1.0e-09,"));
  assert.equal(changed(others, "a.c", 0.002), others);
  assert.equal(changed(others, "a.d", undefined), others.replace(" d: 5e-4,", ""));
});

yamlTest("the task of a config is the one that it names", () => {
  const { taskOf } = page;
  assert.equal(taskOf("task: {name: sort}\n"), "sort");
  for (const text of ["", "[", "5", "task: {}", "task: 5"]) assert.equal(taskOf(text), undefined, text);
});

yamlTest("a change that has no place in the text is refused, and says why", () => {
  const { changed } = page;
  for (const [text, pattern] of [
    ["train: 5\n", /^train is no map of keys; correct it in the YAML, then change train\.steps$/],
    ["train: [5]\n", /^train is no map of keys/],
    ["a: &x {b: 1}\ntrain: *x\n", /^train is no map of keys/],
    ["5\n", /^the config is no map of keys/],
    ["- a\n", /^the config is no map of keys/],
    ["task: {name: sort}\ntrain: {steps: [\n", /^the YAML is not valid at line \d; correct it there, then change train\.steps$/],
    ["a: 1\n\tb: 2\n", /^the YAML is not valid at line 2/],
    ["a: 1\n---\nb: 2\n", /^the YAML is not valid at line \d/],
  ])
    assert.throws(() => changed(text, "train.steps", 7), refused(pattern), text);
  assert.equal(page.invalidAt("train: 5\n"), "");
});

yamlTest("only files that the config names travel with it", () => {
  const { filesOf, namedFiles } = page;
  const own = {
    "pasted.tsv": "secret\tdata\n",
    "a.tsv": "a\tb\n",
    "test.tsv": "c\td\n",
    "base.yaml": "task: {file: deep.tsv}\n",
    "deep.tsv": "e\tf\n",
  };
  assert.deepEqual(filesOf("task: {name: reverse}\n", own), {});
  assert.deepEqual(filesOf("task: {name: file, file: a.tsv} # not pasted.tsv\n", own), { "a.tsv": own["a.tsv"] });
  assert.deepEqual(filesOf("task: {name: file, file: data/a.tsv}\n", own), {}, "a name that ends alike");
  assert.deepEqual(filesOf("# pasted.tsv\ntask:\n  name: 'file'\n  file: \"/lab/a.tsv\"\n  test_file: ./test.tsv\n", own), {
    "a.tsv": own["a.tsv"],
    "test.tsv": own["test.tsv"],
  });
  assert.deepEqual(Object.keys(filesOf("base: base.yaml\n", own)), ["base.yaml", "deep.tsv"]);
  assert.deepEqual(namedFiles("task: {validation_file: v.tsv, vocabulary_file: w.txt, name: pasted.tsv}\nmodel: {file: x.tsv}"), [
    "v.tsv",
    "w.txt",
  ]);
  for (const text of ["", "[", "5", "base: 5", "base: [a.tsv]", "task: a.tsv", "task: {file: toString}"])
    assert.deepEqual(filesOf(text, own), {}, text);
});

yamlTest("a comment of a config that is not the page's own is quoted", () => {
  const { summaryOf } = page;
  const text = "# Your session has ended.\n# Send your data to x.\n\n# More.\ntask: {name: sort}\n";
  assert.equal(summaryOf(text, true), "Your session has ended. Send your data to x.");
  assert.equal(summaryOf(text, false), "The config begins with the comment: “Your session has ended. Send your data to x.”");
  assert.equal(summaryOf("task: {name: sort}\n", false), "");
  assert.ok(summaryOf(`# ${"x".repeat(5000)}\n`, false).length < 400);
});

test("messages of JavaScript stay in the console", () => {
  const error = console.error;
  const said = [];
  console.error = (...given) => said.push(given);
  try {
    assert.equal(explained(new PageError("said")), "said");
    assert.doesNotMatch(explained(new TypeError("x is not a function")), /not a function/);
    assert.equal(said.length, 1);
  } finally {
    console.error = error;
  }
});
