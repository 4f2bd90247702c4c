// Data of the user in the lab, in Node, compared with the native program. Usage: node --test
// tests/addons/lab/data_test.mjs, after scripts/lab.sh; $THIMBLE is the native program.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { keysOf, pieceKeys, pieces } from "../../../src/addons/lab/page/pairs.js";
import { withLab } from "./node_lab.mjs";

const thimble = process.env.THIMBLE ?? fileURLToPath(new URL("../../../build/release/thimble", import.meta.url));
const folder = realpathSync(mkdtempSync(join(tmpdir(), "lab-data-")));
after(() => rmSync(folder, { recursive: true }));

const overridesOf = (keys) => Object.entries(keys).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
const lines = (line, count = 80) => Array.from({ length: count }, (_, i) => line(i, String.fromCharCode(97 + (i % 7)))).join("\n");

// Returns what the native program and the lab make of a file, as JSON or as an error, with the same name for the folder.
async function readings(lab, name, text, more) {
  writeFileSync(join(folder, name), text);
  const overrides = overridesOf({ ...keysOf(name, text), ...more });
  const command = ["tasks", "file", ...overrides, "--json", "-", "--quiet"];
  const [stdout, stderr] = spawnSync(thimble, command, { cwd: folder, encoding: "utf8" })
    .output.slice(1)
    .map((output) => output.replaceAll(folder, "/lab"));
  const native = stderr ? { error: stderr.replace(/^thimble: /, "").trimEnd() } : JSON.parse(stdout);
  const answer = await lab.call("task", { name: "file", overrides, files: { [name]: text } });
  const here = answer.error ? { error: answer.error.message } : answer;
  return { native, here };
}

test("data are read as the native program reads the file, with the same output", async () => {
  await withLab(1, async (lab) => {
    for (const [name, text, per, more = {}] of [
      ["tabs.tsv", lines((i, c) => `${i} ${c}\t${c}`), "sequence"],
      ["arrows.tsv", lines((i, c) => `${i} ${c} -> ${c} ${i} x`), "next"],
      ["arrow.txt", `\ufeff${lines((i, c) => `${i} ${c}→${c} ${i}`)}\r\n\n \n`, "position"],
      ["both.tsv", lines((i, c) => `${i} -> ${c}\t${c}`), "sequence"],
      ["plain.csv", lines((i, c) => `"${i} -> ${c}",${c} ${i}`), "next"],
      ["header.csv", `word,ending\n${lines((i, c) => `${c} ${i},"${c}"`)}`, "sequence", { "task.input": "word", "task.target": "ending" }],
      ["header (1).csv", `word,ending\n${lines((i, c) => `${c} ${i},${c} y`)}`, "position", { "task.header": true }],
      ["objects.jsonl", lines((i, c) => `{"input": "${i} -> ${c}", "target": ["${c}"]}`), "sequence"],
      ["tags.conllu", lines((i, c) => `# -> ${i}\n1\t${c}${i}\t_\tNOUN${"\t_".repeat(6)}\n2\tx\t_\tVERB${"\t_".repeat(6)}\n`), "position"],
      [
        "letters.tsv",
        lines((i, c) => `${i} a\t${c}${i}`),
        "next",
        { "task.input_tokens": "characters", "task.target_tokens": "characters" },
      ],
    ]) {
      const { native, here } = await readings(lab, name, text, more);
      assert.deepEqual(here, native, name);
      assert.equal(here.per, per, name);
    }
  });
});

test("problems of data name the lines of the text itself, as the native program does", async () => {
  await withLab(1, async (lab) => {
    for (const [name, text, ...patterns] of [
      ["blank.tsv", `\na b -> c\n\n\nd \u0001 -> e\n`, /blank\.tsv:1: blank line/, /blank\.tsv:5: control character/],
      ["mixed.tsv", lines((i, c) => (i === 6 ? `${i} ${c}\t${c}` : `${i} ${c} -> ${c}`)), /mixed\.tsv:7: 0 separators/],
      ["quoted.csv", `a,b\n"c,d\n`, /quoted\.csv:2: /],
      ["sparse.tsv", lines((i, c) => `${i} ${c} x\t${c} ${i === 3 ? "_" : i}`), /sparse\.tsv:4: a position without an answer/],
      ["empty.tsv", "", /empty\.tsv: the file is empty/],
    ]) {
      const { native, here } = await readings(lab, name, text);
      assert.ok(here.error, `${name} is accepted`);
      assert.equal(here.error, native.error);
      for (const pattern of patterns) assert.match(here.error, pattern);
    }
  });
});

test("an input is shown as it is typed, and typed as the file is read", async () => {
  await withLab(1, async (lab, call) => {
    const open = (keys, content) =>
      call("open", {
        yaml: "model: {d_model: 8}\ntrain: {steps: 5, batch: 8}\n",
        overrides: overridesOf({ "task.name": "file", ...keys }),
        files: { [keys["task.file"]]: content },
      });
    const first = async () => {
      const [{ text, tokens, source }] = await call("examples", { split: "validation", count: 999 });
      const trace = await call("trace", { input: text });
      assert.deepEqual(trace.source ?? trace.tokens, source ?? tokens);
      return text;
    };
    const next = { "model.output.per": "next", "model.attention.mask": "causal" };
    const prose = Array.from({ length: 200 }, (_, i) => `the fox _ jumps ${i * i} times.`).join(" ");
    await open({ ...pieceKeys("pasted.jsonl", "letters"), ...next }, pieces(prose, "letters").join("\n"));
    assert.ok(prose.includes(await first()));
    assert.deepEqual((await call("trace", { input: "the  f" })).tokens, ["t", "h", "e", "␣", "␣", "f"]);
    await open({ ...pieceKeys("pasted.jsonl", "words"), ...next }, pieces(prose, "words").join("\n"));
    assert.ok(prose.includes(await first()));
    assert.deepEqual((await call("trace", { input: " the  fox" })).tokens, ["the", "fox"]);
    assert.deepEqual(await call("examples", { split: "validation", first: 999 }), []);
    await open(
      { "task.file": "pairs.tsv", "model.kind": "recurrent" },
      lines((i, c) => `${i} ${c}\t${c} ${i} x`),
    );
    assert.match(await first(), /^\d+ [a-g]$/);
  });
});
