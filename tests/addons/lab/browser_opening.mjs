// Opens files in the lab: dropped or chosen, one or several, right and wrong.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

import { click, closed, drop, open, put, sleep, text, textOf } from "./browser.mjs";

// Drops a directory: in Chromium as the system does; in Firefox, which tests cannot drag to, as objects of its interface.
async function dropDirectory(b, page, path, files) {
  if (b.name === "chromium") {
    const session = await page.createCDPSession();
    const data = { items: [], files: [path], dragOperationsMask: 1 };
    for (const type of ["dragEnter", "dragOver", "drop"]) {
      session.send("Input.dispatchDragEvent", { type, x: 200, y: 200, data }).catch(() => {});
      await sleep(300);
    }
    return;
  }
  await page.evaluate(
    (given) => {
      const directory = (name, tree) => ({
        name,
        isDirectory: true,
        createReader: () => {
          let left = Object.entries(tree).map(([child, content]) =>
            content instanceof File ? file(child, content) : directory(child, content),
          );
          return { readEntries: (done) => done(left.splice(0, 1)) };
        },
      });
      const file = (name, content) => ({ name, isFile: true, isDirectory: false, file: (done) => done(content) });
      const tree = {};
      for (const [path, base64] of given) {
        const parts = path.split("/");
        const name = parts.pop();
        const at = parts.reduce((node, part) => (node[part] ??= {}), tree);
        at[name] = new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], name);
      }
      const item = { kind: "file", webkitGetAsEntry: () => directory("dropped", tree), getAsFile: () => null };
      const event = new Event("drop", { bubbles: true, cancelable: true });
      Object.defineProperty(event, "dataTransfer", { value: { types: ["Files"], items: [item] } });
      document.body.dispatchEvent(event);
    },
    Object.entries(files).map(([name, bytes]) => [name, Buffer.from(bytes).toString("base64")]),
  );
}

// Returns a .safetensors file without metadata and without what an optimizer keeps, as PyTorch's have it.
function weightsAlone(bytes) {
  const size = Number(bytes.readBigUInt64LE(0));
  const { __metadata__, ...all } = JSON.parse(bytes.subarray(8, 8 + size).toString());
  assert.ok(__metadata__);
  const header = {};
  const parts = [];
  let at = 0;
  for (const [name, tensor] of Object.entries(all).filter(([name]) => !name.startsWith("optimizer."))) {
    const [from, to] = tensor.data_offsets;
    header[name] = { ...tensor, data_offsets: [at, at + to - from] };
    parts.push(bytes.subarray(8 + size + from, 8 + size + to));
    at += to - from;
  }
  const json = Buffer.from(JSON.stringify(header).padEnd(8 * Math.ceil(JSON.stringify(header).length / 8)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([length, json, ...parts]);
}

/** Tests of files that are opened: test(name, run(b)) adds one, native(...arguments) calls the native program. */
export function openingTests(test, file, { native, modules, root }) {
  const { zipSync } = createRequire(join(modules, "package.json"))("fflate");
  const refused = async (page, pattern) => {
    const model = await text(page, "#foot");
    await textOf(page, "#message", pattern);
    assert.equal(await text(page, "#foot"), model, "what was open stays");
    await put(page, "#first-train-seed", String(Math.floor(Math.random() * 1e6)));
    await textOf(page, "#message", /^$/);
    await textOf(page, "#foot", /at step 0;/);
  };

  test("runs, weights, configs and pairs can be dropped", async (b) => {
    const folder = join(b.directory, `opening_${b.name}`);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const data = Array.from({ length: 300 }, (_, i) => `${i % 7} x ${i % 11}\t${(i % 7) + (i % 11)} y z\n`).join("");
    const config = "base: own_data.yaml\ntask: {name: file, file: data.tsv}\nmodel: {layers: 1, output: {per: position}}\n";
    for (const [name, content] of [
      ["data.tsv", data],
      ["config.yaml", config],
      ["own_data.yaml", readFileSync(join(root, "configs/own_data.yaml"))],
    ])
      writeFileSync(join(folder, name), content);
    native("train", join(folder, "config.yaml"), "train.steps=60", "train.evaluate_every=20", "--out", join(folder, "run"), "--quiet");
    const { weights_hash: hash } = JSON.parse(readFileSync(join(folder, "run/summary.json")));
    const opened = new RegExp(`weights ${hash} `);
    const read = (name) => readFileSync(join(folder, name));
    const names = ["config.yaml", "data.json", "metrics.jsonl", "summary.json", "checkpoints/final.safetensors"];
    const run = Object.fromEntries(names.map((name) => [`run/${name}`, read(`run/${name}`)]));
    const whole = { ...run, "data.tsv": read("data.tsv") };
    for (const [name, content] of Object.entries(whole)) {
      mkdirSync(dirname(join(folder, "dropped", name)), { recursive: true });
      writeFileSync(join(folder, "dropped", name), content);
    }

    const page = await open(b, file);
    // A run on one's own data: an archive, and its directory.
    for (const act of [() => drop(page, { "run.zip": zipSync(whole) }), () => dropDirectory(b, page, join(folder, "dropped"), whole)]) {
      await act();
      await textOf(page, "#foot", opened);
      await textOf(page, "#ending", /^Finished: all steps are done\. Validation accuracy \d/);
      await click(page, "#reset");
      await textOf(page, "#foot", /at step 0;/);
    }
    await drop(page, { "run.zip": zipSync(run) });
    await refused(page, /the run was trained on data\.tsv; open the run and its data together/);

    // Weights of thimble hold their config; those of PyTorch do not.
    const alone = weightsAlone(run["run/checkpoints/final.safetensors"]);
    await drop(page, { "model.safetensors": alone });
    await refused(page, /model\.safetensors: no config in the metadata; give the config of the model as well/);
    await drop(page, { "model.safetensors": alone, "config.yaml": config, "data.tsv": data });
    await textOf(page, "#foot", opened);
    assert.ok(await page.$eval("#train", (button) => button.disabled));
    await textOf(page, "#answer", /\d/);

    // A config with its data, and pairs alone.
    await drop(page, { "other.yaml": config.replace("layers: 1", "layers: 2"), "data.tsv": data });
    await textOf(page, "#status", /^step 0 of/);
    assert.equal(await page.$eval("#first-model-layers", (field) => field.value), "2");
    await drop(page, { "some.txt": data.replaceAll("\t", " -> ") });
    await textOf(page, "#status", /^step 0 of 600/);
    await page.waitForFunction(() => document.querySelector("#yaml").value.startsWith("# Own data: the pairs of some.txt."));
    const own = await page.$eval("#yaml", (area) => area.value);
    assert.match(own, /file: some\.txt, separator: ->/);
    assert.match(own, /per: position/);
    await drop(page, { "text.txt": "the quick brown fox jumps over the lazy dog and runs away. ".repeat(12) });
    await page.waitForFunction(() => /^# Own data: \d+ pieces of a text/.test(document.querySelector("#yaml").value));
    await textOf(page, "#foot", /at step 0;/);

    // Text that is dragged within the page goes where it is dropped.
    const prevented = await page.evaluate(() => {
      const dataTransfer = new DataTransfer();
      dataTransfer.setData("text/plain", "a b -> c");
      const event = new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true });
      document.querySelector("#own").dispatchEvent(event);
      return event.defaultPrevented;
    });
    assert.equal(prevented, false);
    await closed(page);
  });

  test("files that cannot be opened are refused by name, and nothing is lost", async (b) => {
    const folder = join(b.directory, `opening_${b.name}`);
    mkdirSync(folder, { recursive: true });
    const page = await open(b, file);
    await click(page, "#step");
    await textOf(page, "#foot", /at step 1;/);
    const before = await text(page, "#foot");
    const weights = Buffer.from("\x40\0\0\0\0\0\0\0{");
    for (const [files, pattern] of [
      [{ "a.png": "x" }, /^Not opened: a\.png is no run .*, weights .*, config .* or data .*\.$/],
      [{ "a.png": "x", "b.tsv": "1\t2\n" }, /^Not opened: these 2 files are no run/],
      [
        { "a.tsv": "1\t2\n", "b.tsv": "1\t2\n", c: "" },
        /^Not opened: these 3 files are no run .*one \.tsv, \.csv, \.jsonl, \.conllu, \.conll, \.bio, \.iob or \.txt/,
      ],
      [{ "bad.zip": "no archive" }, /^Not opened: .*zip/],
      [{ "none.zip": zipSync({ "a/b.png": Buffer.from("x") }) }, /^Not opened: b\.png is no run/],
      [{ "a.zip": zipSync({ a: Buffer.from("x") }), "b.zip": "x" }, /archive among other files; open it alone/],
      [{ "two.zip": zipSync({ "a/checkpoints/x": weights, "b/checkpoints/x": weights }) }, /there are 2 runs; open one/],
      [{ "run.zip": zipSync({ "run/checkpoints/step-1.safetensors": weights }) }, /config\.yaml/],
      [{ "a.safetensors": weights }, /a\.safetensors: /],
      [{ "a.safetensors": weights, "b.safetensors": weights }, /there are 2 files of weights; open one/],
      [{ "a.yaml": "", "b.yaml": "" }, /there are 2 configs; name the one to open config\.yaml/],
      [{ "binary.tsv": Buffer.from([0xff, 0xfe, 0x00]) }, /^Not opened: binary\.tsv is not a text in UTF-8\.$/],
      [{ "empty.txt": "" }, /There is no pair|A text needs 16 tokens/],
    ]) {
      await page.$eval("#message", (node) => (node.textContent = ""));
      await drop(page, files);
      await textOf(page, "#message", pattern, 10_000);
      assert.equal(await text(page, "#foot"), before, `${Object.keys(files)}: what was open stays`);
    }
    // Too large to be read: 300 MB of nothing.
    const huge = join(folder, "huge.safetensors");
    writeFileSync(huge, "");
    truncateSync(huge, 300 << 20);
    const input = await page.$("#open-files");
    await input.uploadFile(huge);
    await textOf(page, "#message", /^Not opened: the files have 300 MiB, of which at most 256 MiB are opened\.$/);
    rmSync(huge);
    const bomb = zipSync({ "run/checkpoints/x": new Uint8Array((256 << 20) + 1) }, { level: 1 });
    assert.ok(bomb.length < 8 << 20);
    await drop(page, { "bomb.zip": bomb });
    await textOf(page, "#message", /^Not opened: the files have 257 MiB, of which at most 256 MiB are opened\.$/);
    assert.equal(await text(page, "#foot"), before);
    await click(page, "#step");
    await textOf(page, "#foot", /at step 2;/);
    await closed(page);
  });
}
