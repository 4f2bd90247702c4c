// Tests the lab in real browsers. Usage: browser_test.mjs DIRECTORY THIMBLE BROWSER=PATH...
//   DIRECTORY, build/lab, has the page and npm/node_modules, and gets screenshots; THIMBLE is the native program, whose results
//   with the same arithmetic (THIMBLE_TARGET=sse4) the page must have; BROWSER is chromium or firefox.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

import { cell, click, closed, downloaded, launch, open, put, sleep, text, textOf, train, yaml } from "./browser.mjs";
import { walk } from "./browser_lessons.mjs";
import { contrast, inksOf, kReadable } from "./contrast.mjs";
import { openingTests } from "./browser_opening.mjs";
import { pictureTests } from "./browser_pictures.mjs";
import { stateTests } from "./browser_states.mjs";

const [directory, thimble] = process.argv.slice(2, 4).map((path) => resolve(path));
const browsers = process.argv.slice(4).map((argument) => argument.split("="));
const kPage = join(directory, "thimble-lab.html");
const root = resolve(import.meta.dirname, "../../..");
const kModules = join(directory, "npm");
const { unzipSync } = createRequire(join(kModules, "package.json"))("fflate");

const native = (...given) =>
  execFileSync(thimble, given, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], env: { ...process.env, THIMBLE_TARGET: "sse4" } });

// Unpacks an archive into a new folder.
function unpack(archive, folder) {
  rmSync(folder, { recursive: true, force: true });
  for (const [path, bytes] of Object.entries(unzipSync(readFileSync(archive)))) {
    mkdirSync(join(folder, path, ".."), { recursive: true });
    writeFileSync(join(folder, path), bytes);
  }
}

const tests = [];
const test = (name, run) => tests.push({ name, run });

test("starts within a second or so, asks for nothing, and fits", async (b) => {
  const size = statSync(kPage).size;
  assert.ok(size <= 3e6, `the page has ${size} bytes`);
  const page = await open(b, kPage);
  console.log(`${b.name}: ${(size / 1e6).toFixed(2)} MB, first map after ${page.opened} ms`);
  assert.ok(page.opened < 5000, `the first map took ${page.opened} ms`);
  assert.equal(await page.title(), "thimble lab");
  const policy = await page.$eval("meta[http-equiv]", (meta) => meta.content);
  assert.match(policy, /^default-src 'none'; script-src 'sha256-[^']*' 'wasm-unsafe-eval'; style-src 'sha256-[^']*'; worker-src blob:;/);
  await closed(page);
});

// 400 steps natively, and a run of 800 without interruption.
const kShort = ["train.steps=800", "train.evaluate_every=200", "train.checkpoint_every=400"];
const shortened = (before) =>
  before.replace("steps: 3900", "steps: 800").replace("evaluate_every: 390", "evaluate_every: 200\n  checkpoint_every: 400");

test("a run has the native weights, its ablation the native numbers, and its archive resumes natively", async (b) => {
  const uninterrupted = JSON.parse(native("train", join(root, "configs/reverse.yaml"), ...kShort, "--json", "-", "--quiet"));
  const page = await open(b, kPage);
  await yaml(page, shortened);
  await click(page, "#train");
  await textOf(page, "#status", /^step (2\d\d|3\d\d)/);
  await click(page, "#train");
  await click(page, "#save");
  const archive = await downloaded(b, /^\w+-\d+\.zip$/);
  const folder = join(b.directory, `saved_${b.name}`);
  unpack(archive, folder);
  const resumed = JSON.parse(native("train", join(folder, "run"), "--resume", "--json", "-", "--quiet"));
  assert.equal(resumed.weights_hash, uninterrupted.weights_hash);

  await train(page, /^Finished/);
  await textOf(page, "#foot", new RegExp(`weights ${uninterrupted.weights_hash} at step 800`));
  await click(page, "#ablate");
  const shown = await textOf(page, "#effect", /^Accuracy.*test sequences/);
  const effect = JSON.parse(native("ablate", join(folder, "run"), "0.0", "--sequences", "1000", "--json", "-"));
  const percent = (x) => `${(100 * x).toFixed(2)} %`;
  const { accuracy } = effect.baseline;
  assert.ok(shown.startsWith(`Accuracy ${percent(accuracy)} → ${percent(accuracy + effect.zero.accuracy_change)}`), shown);
  assert.ok(shown.includes(`loss +${effect.zero.loss_change.toFixed(3)}`), shown);

  const input = await page.$("#open-files");
  await input.uploadFile(join(folder, "run/checkpoints/final.safetensors"));
  await page.waitForFunction(() => document.querySelector("#train").disabled);
  await textOf(page, "#foot", new RegExp(`weights ${uninterrupted.weights_hash}`));
  await input.uploadFile(archive);
  await textOf(page, "#status", /^step (2\d\d|3\d\d) of 800/);
  await train(page, /^Finished/);
  await textOf(page, "#foot", new RegExp(`weights ${uninterrupted.weights_hash} at step 800`));
  await closed(page);
});

test("the learning rate changes while training goes on, and the archive says so", async (b) => {
  const page = await open(b, kPage);
  await yaml(page, (before) => before.replace("steps: 3900", "steps: 250").replace("evaluate_every: 390", "evaluate_every: 250"));
  await click(page, "#train");
  await textOf(page, "#status", /^step \d\d/);
  await put(page, "#rate", "-2.5");
  await textOf(page, ".rate output", /^0\.0032$/);
  await textOf(page, "#status", /^step 1\d\d/);
  await click(page, "#train");
  await textOf(page, "#foot", /at step 1\d\d;/);
  const slider = await page.$eval("#past", ({ max }) => Number(max));
  assert.ok(slider > 20, `the slider has ${slider} steps before the present`);
  await click(page, "#save");
  const archive = await downloaded(b, /^reverse-1\d\d\.zip$/);
  const folder = join(b.directory, `rate_${b.name}`);
  unpack(archive, folder);
  rmSync(archive);
  const read = (name) => readFileSync(join(folder, "run", name), "utf8");
  const lines = read("metrics.jsonl").trim().split("\n").map(JSON.parse);
  const [{ step, key, from, to }, ...others] = lines.filter(({ split }) => split === "change");
  assert.deepEqual([key, from, to, others], ["train.optimizer.lr", 0.0005, 0.0032, []]);
  assert.match(read("config.yaml"), new RegExp(`^# train\\.optimizer\\.lr was 0\\.0005 up to step ${step}, then 0\\.0032\\.\\n`));
  // The schedule is that of 250 steps with 50 of warmup; its rate is multiplied by the one of the moment.
  const rates = lines.filter(({ split }) => split === "train").map((line) => [line.step, line.learning_rate]);
  const schedule = (made) => (Math.min(1, made / 50) * (1 + Math.cos((Math.PI * made) / 250))) / 2;
  for (const [at, rate] of rates) {
    const base = at <= step ? 0.0005 : 0.0032;
    assert.ok(Math.abs(rate - base * schedule(at - 1)) < 0.01 * base, `${rate} at step ${at}, after a change at ${step}`);
  }
  assert.ok(rates.at(0)[0] <= step && rates.at(-1)[0] > step);

  const resumed = JSON.parse(native("train", join(folder, "run"), "--resume", "--json", "-", "--quiet"));
  await train(page, /^Finished/);
  await textOf(page, "#foot", new RegExp(`weights ${resumed.weights_hash} at step 250`));
  assert.ok(await page.$eval("#rate", (input) => input.disabled));
  await click(page, "#reset");
  await textOf(page, ".rate output", /^0\.0005$/);
  await closed(page);
});

test("reverse reaches 99.9 %", async (b) => {
  const page = await open(b, kPage);
  await yaml(page, (before) => before.replace("evaluate_every: 390", "evaluate_every: 100\n  target: {accuracy: 0.999}"));
  const start = Date.now();
  await train(page, /^Finished: the target is reached/);
  console.log(`${b.name}: reverse at 99.9 % after ${((Date.now() - start) / 1000).toFixed(1)} s: ${await text(page, "#status")}`);
  assert.match(await text(page, "#answer-sum"), /^16 of 16 right/);
  await page.screenshot({ path: join(b.directory, `${b.name}_trained.png`) });

  const picture = () => page.$eval("#map canvas", (canvas) => canvas.toDataURL());
  const now = await picture();
  await put(page, "#past", "0");
  await textOf(page, ".past output", /^step 0$/);
  await sleep(300);
  assert.notEqual(await picture(), now);
  await click(page, "#live");

  await cell(page, 2, 13);
  await textOf(page, "#formula", /score = q·k × scale = .*weight = .* = 0\.\d+/);
  const [, weight] = (await text(page, "#cell")).match(/: (0\.\d+)$/);
  const [, computed] = (await text(page, "#formula")).match(/= (0\.\d+)$/);
  assert.ok(Math.abs(weight - computed) <= 0.001, `${weight} is shown, ${computed} computed`);

  await page.$eval("#row-editor", (details) => (details.open = true));
  await put(page, "#row-query", "2");
  await page.waitForSelector(".bars-of-row input");
  const input = (await page.$eval("#input", (field) => field.value)).split(" ");
  const other = input.findIndex((token) => token !== input[13]);
  await page.$$eval(
    ".bars-of-row input",
    (sliders, index) => {
      sliders[index].value = 1;
      sliders[index].dispatchEvent(new Event("input", { bubbles: true }));
    },
    other,
  );
  await textOf(page, "#answer-sum", /predictions changed/);
  const chip = await text(page, '#answer [data-at="2"] .prediction .token');
  assert.equal(chip, input[other]);
  await click(page, "#undo");
  await textOf(page, "#answer-sum", /^16 of 16 right\.$/);

  await page.$eval("#patch-editor", (details) => (details.open = true));
  await put(page, "#patch", input.map((token) => String(9 - token)).join(" "));
  await click(page, "#use-patch");
  await textOf(page, "#answer-sum", /predictions changed/);
  await click(page, "#undo");
  await closed(page);
});

test("gradients are checked", async (b) => {
  const page = await open(b, kPage);
  await click(page, "#gradcheck");
  await textOf(page, ".gradients", /19 gradients checked in double, 0 wrong, 0 undecided;/);
  await closed(page);
});

test("errors stand at the field and at the line", async (b) => {
  const page = await open(b, kPage);
  await put(page, "#first-train-batch", "1.5");
  const problem = await textOf(page, "#first-train-batch-problem", /batch|integer/);
  const lines = await page.$eval("#yaml", (area) => area.value.split("\n"));
  const at = lines.findIndex((line) => line.includes("batch: 1.5")) + 1;
  assert.ok(at > 0 && lines[0].startsWith("# Reverse"), "the comment stays");
  assert.match(await text(page, "#yaml-problems"), new RegExp(`line ${at}: `));
  assert.ok((await text(page, "#yaml-problems")).includes(problem));
  assert.equal(await text(page, ".numbers .wrong"), String(at));
  await put(page, "#first-train-batch", "64");
  await textOf(page, "#first-train-batch-problem", /^$/);
  await put(page, "#first-model-d_model", "8192");
  await put(page, "#first-model-layers", "128");
  await textOf(page, "#yaml-problems", /memory/);
  await closed(page);
});

// Tokens that try to be markup, to break out of strings, to hide or to turn the line around.
const kHostile = [
  "<script>alert(1)</script>",
  "<img/src=x/onerror=alert(2)>",
  "</textarea>",
  "</script>",
  "<!--",
  "-->",
  "]]>",
  "<b>",
  "&lt;",
  "&#x3c;",
  '"',
  "'",
  "`",
  "\\",
  "\\u003c",
  "${alert(3)}",
  "{{worker}}",
  "%3Cb%3E",
  "javascript:alert(4)",
  "=cmd",
  "../../x",
  "/etc/passwd",
  "C:\\x",
  "nul",
  "__proto__",
  "constructor",
  "toString",
  "NaN",
  "-0",
  "1e999",
  "null",
  "true",
  "~",
  "*a",
  "&a",
  "!!js",
  "#",
  "- x".replace(" ", "\u00a0"),
  "\u202eevil",
  "\u200b",
  "\u0001",
  "\u007f",
  "\ufeff",
  "é́́",
  "😀",
  "𝕏\u2066",
];

test("46 hostile tokens are data and nothing else", async (b) => {
  assert.equal(kHostile.length, 46);
  const page = await open(b, kPage);
  const lines = Array.from({ length: 138 }, (_, i) => {
    const tokens = Array.from({ length: 3 }, (_, k) => kHostile[(i * (k + 1) + 7 * k) % 46]);
    return `${tokens.join(" ")}\t${kHostile[i % 46]}`;
  }).join("\n");
  await page.$eval(".own", (details) => (details.open = true));
  await put(page, "#own", lines);
  await click(page, "#use-own");
  await textOf(page, "#yaml-problems", /pasted\.tsv:\d+: control character in token/);
  await put(page, "#own", lines.replaceAll("\u0001", "\u2067one").replaceAll("\u007f", "\u200fdelete"));
  await click(page, "#use-own");
  await textOf(page, "#status", /^step 0 of 600/);
  await page.waitForFunction(() => document.querySelector("#input").value !== "" && document.querySelector("#answer .chip"));
  await train(page, /^step (\d\d+)/);
  await click(page, "#another");
  await sleep(300);
  const shown = await page.$eval("#answer", (node) => node.textContent);
  assert.ok(!/[\p{Cc}\p{Cf}]/u.test(shown), JSON.stringify(shown));
  assert.equal(await page.$$eval("main script, main img, main b > b, main iframe", (found) => found.length), 0);
  await click(page, "#share");
  await textOf(page, "#note", /link|address/);
  const fragment = await page.evaluate(() => location.hash);
  await page.screenshot({ path: join(b.directory, `${b.name}_hostile.png`) });
  await closed(page);
  const again = await open(b, kPage, { fragment });
  await textOf(again, "#status", /^step 0 of 600/);
  await closed(again);
});

test("links that are broken or too large are refused", async (b) => {
  const bomb = (await import("node:zlib")).deflateRawSync(Buffer.alloc(50_000_000, 97), { level: 9 }).toString("base64url");
  for (const fragment of ["#lab=AAAA", "#lab=%00", `#lab=${bomb}`, "#lab=q1aqzKzKTFGyUrJSqgUA"]) {
    const page = await open(b, kPage, { fragment });
    assert.match(await text(page, "#message"), /link cannot be opened/i);
    await textOf(page, "#status", /^step 0 of 3,900/);
    await closed(page);
  }
});

test("a text trains letter by letter", async (b) => {
  const page = await open(b, kPage);
  await page.$eval(".own", (details) => (details.open = true));
  await put(page, "#own", "the quick brown fox jumps over the lazy dog and runs away. ".repeat(12));
  await click(page, '.kinds input[value="letters"]');
  await click(page, "#use-own");
  await textOf(page, "#status", /^step 0 of 600/);
  await train(page, /^step (\d\d+)/);
  await closed(page);
});

for (const lesson of ["reverse", "sort", "induction", "translation"])
  test(`the lesson ${lesson}`, async (b) => {
    const page = await open(b, kPage);
    await walk(page, lesson);
    await page.screenshot({ path: join(b.directory, `${b.name}_lesson_${lesson}.png`) });
    await closed(page);
  });

test("every width, light and dark", async (b) => {
  for (const scheme of ["light", "dark"])
    for (const [name, width, height] of [
      ["desktop", 1280, 900],
      ["wide", 1720, 1000],
      ["tablet", 820, 1100],
      ["phone", 390, 844],
      ["small", 320, 640],
    ]) {
      const page = await open(b, kPage, { scheme, width, height });
      await click(page, "#train");
      await textOf(page, "#status", /^step \d\d/);
      await click(page, "#train");
      await cell(page, 1, 2);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${name}: ${wide} pixels in ${width}`);
      await page.screenshot({ path: join(b.directory, `${b.name}_${name}_${scheme}.png`) });
      if (name === "phone") await page.screenshot({ path: join(b.directory, `${b.name}_${name}_${scheme}_full.png`), fullPage: true });
      await closed(page);
    }
});

pictureTests(test, kPage);
for (const add of [openingTests, stateTests]) add(test, kPage, { native, modules: kModules, root });

test("every text and control has enough contrast, light and dark", async (b) => {
  for (const scheme of ["light", "dark"]) {
    const page = await open(b, kPage, { scheme });
    const faint = new Set();
    let texts = 0;
    const check = async () => {
      for (const { what, ink, ground, least } of await inksOf(page, kReadable)) {
        const ratio = contrast(ink, ground);
        texts += 1;
        if (ratio < least) faint.add(`${what}: ${ratio.toFixed(2)}, least ${least}`);
      }
    };
    await page.select("#lesson-choice", "sort");
    await textOf(page, "#lesson-title", /step 1 of 5/);
    await page.$$eval("details", (all) => all.forEach((one) => (one.open = true)));
    await check();
    await click(page, "#train");
    await textOf(page, "#status", /^step \d\d/);
    await click(page, "#train");
    await cell(page, 2, 1);
    await click(page, "#ablate");
    await textOf(page, "#effect", /^Accuracy/);
    await put(page, "#first-train-steps", "0");
    await textOf(page, "#yaml-problems", /must be/);
    await put(page, "#input", "no such token");
    await textOf(page, "#message", /token/);
    await click(page, "#share");
    await textOf(page, "#note", /./);
    await check();
    await click(page, "#tab-YAML");
    await page.waitForSelector(".numbers .wrong");
    await check();
    assert.ok(texts > 500, `${texts} were seen`);
    assert.deepEqual([...faint], [], scheme);
    await closed(page);
  }
});

let failed = 0;
const only = process.env.ONLY ? new RegExp(process.env.ONLY) : /./;
for (const [name, path] of browsers) {
  const b = await launch(name, path, directory, kModules);
  for (const { name: title, run } of tests.filter(({ name: one }) => only.test(one))) {
    const start = Date.now();
    try {
      await run(b);
      console.log(`ok: ${name}: ${title} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
    } catch (error) {
      failed += 1;
      console.error(`FAILED: ${name}: ${title}: ${error.stack}`);
      for (const page of (await b.browser.pages()).filter((one) => one.complaints)) {
        console.error(page.complaints.slice(0, 5).join("\n"));
        await page.screenshot({ path: join(directory, `${name}_failed_${failed}.png`) }).catch(() => {});
        await page.close().catch(() => {});
      }
    }
  }
  await b.browser.close();
}
process.exit(failed ? 1 : 0);
