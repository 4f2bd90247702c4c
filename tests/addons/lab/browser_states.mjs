// What is open in the lab stays what it is: damaged archives, calls that are stopped, links with errors, private data.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { deflateRawSync, inflateRawSync } from "node:zlib";

import { click, closed, downloaded, drop, open, put, text, textOf, yaml } from "./browser.mjs";

const linkOf = (config, own = {}) => `#lab=${deflateRawSync(JSON.stringify({ yaml: config, own })).toString("base64url")}`;
const heldBy = (fragment) => JSON.parse(inflateRawSync(Buffer.from(fragment.slice(5), "base64url")));

// Opening this evaluates for minutes.
const kHuge = "task: {name: sort, length: 12}\ndata: {validation: 3000000}\ntrain: {steps: 7}\n";

async function shareLink(page) {
  await click(page, "#share");
  await textOf(page, "#note", /link|address/i);
  return page.evaluate(() => location.hash);
}

const flipped = (bytes, at) => {
  const other = Buffer.from(bytes);
  other[at] ^= 1;
  return other;
};

/** Tests of what stays: test(name, run(b)) adds one, native(...arguments) calls the native program. */
export function stateTests(test, file, { native, modules, root }) {
  const { unzipSync, zipSync } = createRequire(join(modules, "package.json"))("fflate");

  // Saves the run that is open and returns the files of the archive.
  async function saved(b, page) {
    for (const other of readdirSync(b.downloads)) rmSync(join(b.downloads, other)); // of another test
    await click(page, "#save");
    const archive = await downloaded(b, /^\w+-\d+\.zip$/);
    const files = unzipSync(readFileSync(archive));
    rmSync(archive);
    return files;
  }

  test("a damaged run is refused with its reason, and the open one stays", async (b) => {
    const folder = join(b.directory, `damaged_${b.name}`);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const short = ["train.steps=40", "train.evaluate_every=10", "train.checkpoint_every=20"];
    const config = join(root, "configs/sort.yaml");
    const run = (name, ...more) => {
      native("train", config, ...short, ...more, "--out", join(folder, name), "--quiet");
      const read = (path) => readFileSync(join(folder, name, path));
      return (checkpoints) =>
        Object.fromEntries(
          ["config.yaml", "data.json", "metrics.jsonl", ...checkpoints.map((n) => `checkpoints/${n}.safetensors`)].map((path) => [
            `run/${path}`,
            read(path),
          ]),
        );
    };
    const whole = run("whole")(["final"]);
    const weights = "run/checkpoints/final.safetensors";
    const page = await open(b, file);
    await click(page, "#step");
    const before = await textOf(page, "#foot", /at step 1;/);
    const archive = zipSync(whole, { level: 6 });
    const size = whole[weights].length;
    for (const [files, pattern] of [
      [
        { "run.zip": zipSync({ ...whole, [weights]: flipped(whole[weights], size - 9) }) },
        /^Not opened: no checkpoint of the run is intact: .*final\.safetensors/,
      ],
      [{ "run.zip": flipped(archive, archive.length >> 1) }, /^Not opened: the archive is damaged at run\//],
      [
        { "run.zip": zipSync({ ...whole, [weights]: flipped(whole[weights], size >> 1) }) },
        /^Not opened: no checkpoint of the run is intact/,
      ],
      [{ "run.zip": zipSync({ [`run/${"d/".repeat(600)}x`]: Buffer.from("x"), ...whole }) }, /^Not opened: run\/d\/.* is in 601 folders/],
    ]) {
      await page.$eval("#message", (node) => (node.textContent = ""));
      await drop(page, files);
      await textOf(page, "#message", pattern, 20_000);
      await click(page, "#input"); // The engine answers as before, too.
      assert.equal(await text(page, "#foot"), before);
      assert.match(await text(page, "#status"), /^step 1 of 3,900/);
    }
    await click(page, "#step");
    await textOf(page, "#foot", /at step 2;/);

    // An older checkpoint that is intact opens with a warning, and the curves end there.
    const two = run("two", "--stop-after", "39")(["step-20", "step-39"]);
    const newest = "run/checkpoints/step-39.safetensors";
    await drop(page, { "run.zip": zipSync({ ...two, [newest]: flipped(two[newest], two[newest].length - 9) }) });
    await textOf(page, "#message", /step-39\.safetensors.*this is the checkpoint before it/);
    await textOf(page, "#foot", /at step 20;/);
    assert.match(await page.$eval("#results .picture", (node) => node.getAttribute("aria-label")), /^Loss by step/);
    await textOf(page, "#status", /^step 20 of 40/);
    await closed(page);
  });

  test("what takes long can be stopped, and what was open stays", async (b) => {
    const page = await open(b, file, { fragment: linkOf(kHuge), wait: "#stop:not([hidden])" });
    await click(page, "#stop");
    await textOf(page, "#status", /^step 0 of 3,900/);
    await textOf(page, "#message", /^Stopped/);
    await click(page, "#step");
    const before = await textOf(page, "#foot", /at step 1;/);

    // From within a run: the hash of the weights stays, and it trains on.
    await page.evaluate((hash) => (location.hash = hash), linkOf(`${kHuge}# again`));
    await page.waitForSelector("#stop:not([hidden])");
    assert.equal(await text(page, "#foot"), before);
    await click(page, "#stop");
    await textOf(page, "#message", /^Stopped\. The run that was open before still is\.$/);
    assert.equal(await text(page, "#foot"), before);
    assert.equal(await text(page, "#reset"), "Reset to the new config");
    await click(page, "#step");
    await textOf(page, "#foot", /at step 2;/);
    await page.waitForSelector("#stop[hidden]");
    await closed(page);
  });

  test("a session that is stopped comes back as it was", async (b) => {
    const config =
      "task: {name: sort, length: 10}\nmodel: {d_model: 192, layers: 4, heads: 4}\ntrain: {steps: 50, batch: 8}\ndata: {validation: 8, test: 8}\n";
    const page = await open(b, file, { fragment: linkOf(config) });
    await textOf(page, "#status", /^step 0 of 50/);
    for (const step of [1, 2, 3]) {
      await click(page, "#step");
      await textOf(page, "#foot", new RegExp(`at step ${step};`), 120_000);
    }
    const hash = /weights \w+/;
    const before = await text(page, "#foot");
    await click(page, "#gradcheck");
    await page.waitForSelector("#stop:not([hidden])");
    await click(page, "#stop");
    await textOf(page, "#message", /^Stopped\. The run is as it was at step 3\.$/);
    await textOf(page, "#foot", /at step 3;/);
    assert.equal((await text(page, "#foot")).match(hash)[0], before.match(hash)[0]);
    assert.match(await text(page, "#status"), /^step 3 of 50 · \d/);
    await click(page, "#step");
    await textOf(page, "#foot", /at step 4;/, 120_000);
    await closed(page);
  });

  test("data that the config does not name stay here", async (b) => {
    const page = await open(b, file);
    const pairs = Array.from({ length: 300 }, (_, i) => `secret ${i} x${i % 7} -> ${i % 5}`).join("\n");
    await page.$eval(".own", (details) => (details.open = true));
    await put(page, "#own", pairs);
    await click(page, "#use-own");
    await textOf(page, "#status", /^step 0 of 600/);
    assert.deepEqual(Object.keys(heldBy(await shareLink(page)).own), ["pasted.tsv"]);
    const own = await saved(b, page);
    assert.deepEqual(
      Object.keys(own).filter((name) => !name.startsWith("run/")),
      ["pasted.tsv"],
    );
    // Data that are refused do not replace those of the run that is open.
    await put(page, "#own", "other \u0001 -> x\n");
    await click(page, "#use-own");
    await textOf(page, "#yaml-problems", /control character/);
    assert.deepEqual((await saved(b, page))["pasted.tsv"], own["pasted.tsv"]);

    await page.select("#start", "sort.yaml");
    await textOf(page, "#status", /^step 0 of (?!600)/);
    await click(page, "#step");
    await textOf(page, "#foot", /at step 1;/);
    assert.deepEqual(heldBy(await shareLink(page)).own, {});
    const other = await saved(b, page);
    assert.ok(
      Object.keys(other).every((name) => name.startsWith("run/")),
      Object.keys(other).join(", "),
    );

    // Of an archive that is opened, too, only the run and its data are saved again.
    await click(page, "#step");
    await textOf(page, "#foot", /at step 2;/);
    await drop(page, { "run.zip": zipSync({ ...other, "run/diary.txt": Buffer.from("secret"), "letter.txt": Buffer.from("secret") }) });
    await textOf(page, "#foot", /at step 1;/);
    await click(page, "#step");
    await textOf(page, "#foot", /at step 2;/);
    assert.deepEqual(
      Object.entries(await saved(b, page)).filter(([name, bytes]) => /diary|letter/.test(name) || Buffer.from(bytes).includes("secret")),
      [],
    );
    await drop(page, { "run.zip": zipSync(own) });
    await textOf(page, "#foot", /at step 0;/);
    assert.ok("pasted.tsv" in (await saved(b, page)));
    await closed(page);
  });

  test("a link with errors in its config says so beside a run that works", async (b) => {
    const config = "# Your session has ended. Write to x.\ntask: {name: sort}\ntrain: {stepps: 5}\n";
    const page = await open(b, file, { fragment: linkOf(config) });
    await textOf(page, "#message", /^The config of the link has errors, which are listed beside it/);
    await textOf(page, "#yaml-problems", /line 3: unknown key, did you mean train\.steps/);
    assert.equal(await page.$eval("#yaml", (area) => area.value), config);
    assert.equal(await text(page, "#setup .about"), "The config begins with the comment: “Your session has ended. Write to x.”");
    await textOf(page, "#status", /^step 0 of 3,900/);
    await yaml(page, (before) => before.replace("stepps: 5", "steps: 55"));
    await textOf(page, "#status", /^step 0 of 55/);
    // The comment of a config of the page is its own, also when a value is changed.
    await page.select("#start", "reverse.yaml");
    await textOf(page, "#status", /^step 0 of 3,900/);
    await put(page, "#first-train-steps", "77");
    await textOf(page, "#status", /^step 0 of 77/);
    assert.match(await text(page, "#setup .about"), /^Reverse/);
    await closed(page);
  });

  test("changes in the form are not lost while the text has errors", async (b) => {
    const page = await open(b, file);
    const of = (selector) => page.$eval(selector, (node) => [node.value, node.disabled]);
    const whole = await page.$eval("#yaml", (area) => area.value);
    await yaml(page, () => `${whole}\n  x: [\n`);
    await textOf(page, "#form-problem", /^The form is off: the YAML is not valid at line \d+\. Correct it there\.$/);
    assert.equal((await of("#first-train-batch"))[1], true);
    await yaml(page, () => whole);
    await textOf(page, "#form-problem", /^$/);
    assert.equal((await of("#first-train-batch"))[1], false);
    await put(page, "#first-train-batch", "32");
    await page.waitForFunction(() => document.querySelector("#yaml").value.includes("batch: 32"));

    await yaml(page, () => "task: {name: sort}\ntrain: 5\n");
    await textOf(page, "#yaml-problems", /line 2: must be a map of /);
    await put(page, "#first-train-steps", "77");
    await textOf(
      page,
      "#first-train-steps-problem",
      /^not changed: train is no map of keys; correct it in the YAML, then change train\.steps$/,
    );
    assert.deepEqual(await of("#first-train-steps"), ["77", false]);
    assert.equal(await page.$eval("#yaml", (area) => area.value), "task: {name: sort}\ntrain: 5\n");
    await closed(page);
  });

  test("errors in pasted pairs have the line numbers of what was pasted", async (b) => {
    const page = await open(b, file);
    await page.$eval(".own", (details) => (details.open = true));
    await put(page, "#own", "\ufeff\na b -> c\n\n\n\nd \u0001 -> e\n");
    await click(page, "#use-own");
    await textOf(page, "#yaml-problems", /pasted\.tsv:6: control character in token/);
    await textOf(page, "#yaml-problems", /pasted\.tsv:1: blank line; delete it/);
    const pairs = Array.from({ length: 120 }, (_, i) => `a ${i} -> c${i % 3}\n`).join("");
    await put(page, "#own", pairs);
    await click(page, "#use-own");
    await textOf(page, "#status", /^step 0 of 600/);
    assert.equal(heldBy(await shareLink(page)).own["pasted.tsv"], pairs);
    await closed(page);
  });

  test("keys of the form change how own data are read, and an input is typed as they are", async (b) => {
    const page = await open(b, file);
    const shown = (selector) => page.$eval(selector, (node) => !node.closest(".field").hidden);
    assert.equal(await shown("#task-task-separator"), false);
    const header = `word,ending\n${Array.from({ length: 200 }, (_, i) => `a${i},${"xyz"[i % 3]}`).join("\n")}\n`;
    await drop(page, { "my verbs (1).csv": header });
    await textOf(page, "#status", /^step 0 of 600/);
    assert.equal(await page.$eval("#all-data-train", (field) => field.value), "all");
    assert.equal(await shown("#task-task-separator"), true);
    assert.equal(await page.$eval("#task-task-no_answer", (field) => field.value), "_");
    await put(page, "#task-task-input", "wrod");
    await textOf(page, "#yaml-problems", /no column wrod, did you mean word\?/);
    assert.equal(await shown("#task-task-input"), true, "fields stay while the data are refused");
    await put(page, "#task-task-input", "word");
    await put(page, "#task-task-target", "1");
    await textOf(page, "#yaml-problems", /^$/);
    await put(page, "#task-task-target", "ending");
    await put(page, "#task-task-input_tokens", "characters");
    await put(page, "#all-data-train", "90");
    await page.waitForFunction(() => document.querySelector("#lab").getAttribute("aria-busy") === "false");
    const config = await page.$eval("#yaml", (area) => area.value);
    assert.match(config, /input: word, target: "ending", input_tokens: characters/);
    assert.match(config, /train: 90/);
    await textOf(page, "#foot", /at step 0;/);
    await put(page, "#input", "a7");
    await textOf(page, "#answer", /^.*a.*7/s);
    await textOf(page, "#message", /^$/);
    await put(page, "#all-data-train", "all");
    await put(page, "#task-task-input", "");
    await put(page, "#task-task-target", "");
    await page.waitForFunction(() => document.querySelector("#lab").getAttribute("aria-busy") === "false");
    assert.doesNotMatch(await page.$eval("#yaml", (area) => area.value), /input: |target: /);
    assert.deepEqual(Object.keys(heldBy(await shareLink(page)).own), ["my verbs (1).csv"]);
    await closed(page);
  });
}
