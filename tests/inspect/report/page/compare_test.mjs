// Tests of the pages of `thimble compare` and `thimble sweep` in a browser. Usage: compare_test.mjs DIRECTORY CHROMIUM
import assert from "node:assert/strict";
import { join } from "node:path";

import { closed, directory, drawn, finish, open, picture, test } from "./browser.mjs";

const faint = (page) => page.locator("#results tr.faint th").allTextContents();

test("two runs: results, curves, config, matched heads", async () => {
  const page = await open("compare.html");
  assert.equal(await page.title(), "reverse · thimble compare");
  const sections = await page.locator("main section").evaluateAll((all) => all.map((s) => s.id));
  assert.deepEqual(sections, ["results", "curves", "config", "heads"]);
  assert.deepEqual(await page.locator("#results tbody th").allTextContents(), ["one", "four"]);
  const losses = await page.locator("#results tbody tr td:nth-child(3)").allTextContents();
  const best = losses.map(parseFloat).indexOf(Math.min(...losses.map(parseFloat)));
  assert.ok(losses[best].endsWith("★") && !losses[1 - best].includes("★"), losses.join());

  const keys = () => page.locator("#config tbody th").allTextContents();
  assert.deepEqual(await keys(), ["model.heads", "train.seed", "weights"]);
  await page.getByLabel("show all keys").check();
  assert.ok((await keys()).includes("train.steps") && (await keys()).includes("thimble version"));

  const cards = page.locator(".match");
  assert.equal(await cards.count(), 1);
  assert.match(await cards.first().textContent(), /one\s*head 0.0\s*four\s*head 0.\d/);
  assert.match(await page.locator("#heads > p").last().textContent(), /^Without a match in one: .* of four\.$/);
  const before = await picture(page, ".match canvas");
  await page.locator('[data-choice="example"]').selectOption("1");
  assert.notEqual(await picture(page, ".match canvas"), before);
  await page.locator("#curves .picture").first().focus();
  await page.keyboard.press("ArrowRight");
  assert.match(await page.locator("#curves .readout").first().textContent(), /^step 20: one \d\.\d+ · four \d/);
  await closed(page);
});

test("links select the settings of a sweep", async () => {
  const page = await open("sweep.html");
  assert.deepEqual(await page.locator("#settings thead th").allTextContents(), ["", "lr 0.001", "lr 0.005", "lr 0.02"]);
  assert.equal(await page.locator("#settings .cell a").count(), 6);
  assert.equal(await page.locator("#curves .area").count(), 18);
  assert.deepEqual(await faint(page), []);
  await page.locator("#settings dd a", { hasText: /^2$/ }).click();
  await drawn(page);
  assert.ok(page.url().endsWith("#model.heads=2"));
  const ones = ["heads=1 lr=0.001", "heads=1 lr=0.005", "heads=1 lr=0.02"];
  assert.deepEqual(await faint(page), ones);
  assert.equal(await page.locator("#curves .area").count(), 9);
  assert.equal(await page.locator("#curves figcaption").first().locator(".key").count(), 3);
  await page.keyboard.press("Enter"); // the same link again
  await drawn(page);
  assert.deepEqual(await faint(page), []);
  await page.locator("#settings .cell a").nth(4).focus();
  await page.keyboard.press("Enter");
  await drawn(page);
  assert.equal((await faint(page)).length, 5);
  await page.goBack();
  await page.goBack();
  await drawn(page);
  assert.deepEqual(await faint(page), ones);
  await page.locator('[data-choice="metric"]').selectOption("validation.loss");
  const marked = page.locator("#settings .best");
  assert.equal(await marked.count(), 1);
  assert.match(await marked.textContent(), /^\d\.\d{5} ★$/);
  await closed(page);
});

test("an address selects runs, and one without a run selects all", async () => {
  const page = await open("sweep.html#train.optimizer.lr=0.005");
  assert.equal((await faint(page)).length, 4);
  await closed(page);
  for (const address of ["#train.optimizer.lr=7", "#curves"]) {
    const all = await open(`sweep.html${address}`);
    assert.deepEqual(await faint(all), []);
    await closed(all);
  }
});

test("every width, light and dark", async () => {
  for (const name of ["compare", "sweep"])
    for (const colorScheme of ["light", "dark"]) {
      const page = await open(`${name}.html`, { colorScheme });
      for (const width of [360, 1920, 1280]) {
        await page.setViewportSize({ width, height: 900 });
        await drawn(page);
        const fits = await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth);
        assert.ok(fits, `${name} at ${width} is too wide`);
        if (width === 360) await page.screenshot({ path: join(directory, `${name}_phone_${colorScheme}.png`), fullPage: true });
      }
      await page.screenshot({ path: join(directory, `${name}_${colorScheme}.png`), fullPage: true });
      await closed(page);
    }
});

await finish();
