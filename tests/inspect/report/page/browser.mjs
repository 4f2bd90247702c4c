// Opens reports in a browser for page_test.mjs, and reads what they draw.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

export const directory = resolve(process.argv[2]);
const { chromium } = createRequire(join(directory, "package.json"))("playwright-core");
export const browser = await chromium.launch({ executablePath: process.argv[3], args: ["--no-sandbox", "--disable-gpu"] });

const tests = [];
export const test = (name, run) => tests.push({ name, run });

// Runs the tests and ends the program.
export async function finish() {
  let failed = 0;
  for (const { name, run } of tests) {
    try {
      await run();
      console.log(`ok: ${name}`);
    } catch (error) {
      failed += 1;
      console.error(`FAILED: ${name}: ${error.stack}`);
    }
  }
  await browser.close();
  process.exit(failed ? 1 : 0);
}

// Opens a report, whose name may end with "#..." for its address, and collects its errors and its requests.
export async function open(name, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.complaints = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && page.complaints.push(message.text()));
  page.on("pageerror", (error) => page.complaints.push(String(error)));
  page.on("dialog", (dialog) => {
    page.complaints.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => page.complaints.push(`request: ${request.url()}`));
  const [file, hash] = name.split(/(?=#)/);
  const url = pathToFileURL(join(directory, file)).href + (hash ?? "");
  const start = Date.now();
  await page.goto(url, { waitUntil: "load" });
  await drawn(page);
  page.opened = Date.now() - start;
  const isOwn = (text) => text.split("#")[0] === `request: ${url.split("#")[0]}`;
  assert.equal(page.complaints.filter(isOwn).length, 1);
  page.complaints = page.complaints.filter((text) => !isOwn(text));
  return page;
}

// Requires that the page had no errors and loaded nothing else, and closes it.
export async function closed(page) {
  assert.deepEqual(page.complaints, []);
  await page.context().close();
}

// Waits until the page has drawn its last change.
export const drawn = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

// The large map of the selected head.
export const kMap = '.map[aria-label^="Attention of the selected"]';

// Returns the center of cell (row, column) of the large map, relative to the map, and the weight drawn there.
export const cell = (page, row, column) =>
  page.evaluate(
    ([r, c, selector]) => {
      const map = attention(state.head);
      const node = document.querySelector(selector);
      const box = layOut(map, node.clientWidth, document.createElement("canvas").getContext("2d"));
      return { x: box.left + (c + 0.5) * box.cell, y: box.top + (r + 0.5) * box.cell, value: map.at(r, c), step: map.step };
    },
    [row, column, kMap],
  );

// Points at a cell of the large map, requires that the tooltip gives its weight, and returns the tooltip.
export async function pointAt(page, row, column) {
  const map = page.locator(kMap);
  await map.scrollIntoViewIfNeeded();
  const expected = await cell(page, row, column);
  await map.hover({ position: expected });
  const tip = await map.locator(".tip").textContent();
  assert.ok(expected.value === null || Math.abs(parseFloat(tip) - expected.value) <= expected.step, `${tip} is not ${expected.value}`);
  return tip;
}

// Returns the sums of the rows of the selected head's map, its size, and whether a key is masked.
export const sums = (page) =>
  page.evaluate(() => {
    const map = attention(state.head);
    const rows = Array.from({ length: map.rows }, (_, r) => Array.from({ length: map.columns }, (_, c) => map.at(r, c)));
    return {
      rows: map.rows,
      columns: map.columns,
      sums: rows.map((row) => row.reduce((a, b) => a + b)),
      masked: rows.flat().includes(null),
    };
  });

// Returns the tokens of a strip of chips: "queries" or "keys of the query".
export const chips = (page, name) =>
  page.locator(`.strip[aria-label="${name}"] .chip > .token`).evaluateAll((all) => all.map((token) => token.title));

export const picture = (page, selector) =>
  page
    .locator(selector)
    .first()
    .evaluate((canvas) => canvas.toDataURL());
