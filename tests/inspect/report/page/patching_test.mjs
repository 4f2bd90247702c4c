// Tests of the sections on patching. Usage: patching_test.mjs DIRECTORY CHROMIUM
import assert from "node:assert/strict";
import { join } from "node:path";

import { closed, directory, drawn, finish, open, test } from "./browser.mjs";

const sections = (page) => page.locator("main section").evaluateAll((all) => all.map((s) => s.id));
const links = (page) => page.locator("nav a").evaluateAll((all) => all.map((a) => a.textContent));

test("edges are drawn as wide as their effect, and listed", async () => {
  const page = await open("edges.html");
  assert.equal((await sections(page))[0], "edges");
  assert.equal((await links(page))[0], "Edges");
  // At first only edges of at least 0.5 % are drawn, those of no effect where they are asked for.
  const lines = await page.locator("#edges .edge").evaluateAll((all) => all.map((line) => [line.getAttribute("class"), line.textContent]));
  assert.deepEqual(lines, [["edge to-value", "embedding -> 0.0 value: +0.500 (approximate 95 % CI +0.40 to +0.60)"]]);
  assert.deepEqual(await page.locator("#edges svg text").allTextContents(), [
    "embedding",
    "0.0previous token",
    "0.1",
    "ffn 0",
    "1.0",
    "1.1",
    "ffn 1",
    "logits",
  ]);
  const [count, card] = ["#edges [aria-live]", "#edges .panel"].map((selector) => page.locator(selector).first());
  const rule = "those whose effect, up or down, is at least 0.5 %";
  assert.equal(await count.textContent(), `1 of 46 edges are drawn, ${rule}.`);
  await page.locator('[data-choice="effect at least"]').selectOption("0");
  assert.equal(await count.textContent(), "46 of 46 edges are drawn.");
  assert.equal(await page.locator("#edges .edge").count(), 46);
  const [inner, figure] = [await card.boundingBox(), await page.locator("#edges svg").boundingBox()];
  assert.ok(inner.width - figure.width < 40, `${figure.width} of ${inner.width} pixels are drawn on`);
  const text = await page.locator("#edges").textContent();
  assert.match(text, /^Edges3 pairs of test sequences\..*Circuit: 1 of 46 edges keep 100\.0 % of it/s);
  const row = await page.locator("#edges tbody tr").first().locator("th, td").allTextContents();
  assert.deepEqual(row, ["embedding -> 0.0 value", "+0.500+0.400 to +0.600", "0.000", "yes"]);
  assert.equal(await page.locator("#edges tbody tr").count(), 20);
  await closed(page);
});

test("noising is mapped by head and position, with its effect at the pointer", async () => {
  const page = await open("patching.html");
  assert.equal((await sections(page))[0], "patching");
  const row = await page.locator("#patching tbody tr").first().locator("th, td").allTextContents();
  assert.deepEqual(row, ["1.0", "+0.250+0.200 to +0.300", "+0.250+0.200 to +0.300"]);
  assert.match(await page.locator("#patching .about").textContent(), /^2 pairs .* the strongest square is 0\.125\.$/);
  const map = page.locator("#patching .map");
  const tip = map.locator(".tip");
  await map.focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await tip.textContent(), "head 1.0, position 0: +0.125 (approximate 95 % CI 0.00 to +1.00), 2 pairs");
  await page.keyboard.press("ArrowRight");
  assert.equal(await tip.textContent(), "head 1.0, position 1: −0.500 (approximate 95 % CI −1.00 to 0.00), 1 pair");
  await closed(page);
});

test("of one pair, tokens and answers are shown", async () => {
  const page = await open("patching_pair.html");
  const table = page.locator("#patching table").first();
  assert.deepEqual(await table.locator("tbody tr").allInnerTexts(), ["clean\ta b\td", "corrupted\ta <c>\te"]);
  const svg = await page
    .locator("#patching .map")
    .first()
    .innerText()
    .catch(() => "");
  assert.doesNotMatch(svg, /undefined/);
  await closed(page);
});

test("both fit every width, light and dark", async () => {
  for (const name of ["edges", "patching"])
    for (const colorScheme of ["light", "dark"]) {
      const page = await open(`${name}.html`, { colorScheme });
      for (const width of [390, 820, 1280]) {
        await page.setViewportSize({ width, height: 900 });
        await drawn(page);
        const fits = await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth);
        assert.ok(fits, `${name} at ${width} is too wide`);
        const cut = await page
          .locator("#patching .scroll")
          .evaluateAll((all) => all.filter((card) => card.scrollWidth > card.clientWidth).length);
        assert.equal(cut, 0, `${name} at ${width}: a card of patching is cut`);
      }
      await page.screenshot({ path: join(directory, `${name}_${colorScheme}.png`) });
      await closed(page);
    }
});

await finish();
