// Tests of the slider over the checkpoints of a run in a browser. Usage: series_test.mjs DIRECTORY CHROMIUM
import assert from "node:assert/strict";
import { join } from "node:path";

import { closed, directory, drawn, finish, open, picture, test } from "./browser.mjs";

const kLarge = '.map[aria-label^="Attention at the checkpoint"]';
const shown = (page) => page.locator("#checkpoints .choices > output").textContent();
const maps = async (page) => [
  await picture(page, `${kLarge} canvas`),
  await picture(page, "#checkpoints .tile:not([aria-pressed=true]) canvas"),
];

test("the slider shows every head at each checkpoint", async () => {
  const page = await open("series.html");
  const steps = await page.evaluate(() => report.series.steps.map((s) => s.step));
  assert.deepEqual(steps, [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 600]);
  assert.equal(await page.locator("#checkpoints .tile").count(), 6);
  assert.match(await shown(page), /^step 600: loss \d/);
  const last = await maps(page);
  const slider = page.locator("#checkpoint");
  await slider.focus();
  await page.keyboard.press("Home");
  await drawn(page);
  assert.match(await shown(page), /^step 0, before training: loss \d/);
  const first = await maps(page);
  assert.ok(first[0] !== last[0] && first[1] !== last[1]);
  assert.equal(await slider.getAttribute("aria-valuetext"), "step 0, before training");
  await page.keyboard.press("ArrowRight");
  await page.getByRole("button", { name: "next checkpoint" }).click();
  assert.match(await shown(page), /^step 2: /);
  await slider.focus();
  await page.keyboard.press("End");
  await drawn(page);
  assert.deepEqual(await maps(page), last);
  await page.locator('[data-choice="checkpoint example"]').selectOption("3");
  assert.notEqual((await maps(page))[0], last[0]);
  await closed(page);
});

test("the map at the last checkpoint is that of the report", async () => {
  const page = await open("series.html");
  const difference = await page.evaluate(() => {
    const maps = report.heads.map((h, index) => {
      update({ source: "example", example: 0 });
      return [seriesMap(h), attention(index)];
    });
    const cells = ([a, b]) => Array.from({ length: a.rows * a.columns }, (_, i) => [Math.floor(i / a.columns), i % a.columns].join());
    return Math.max(
      ...maps.flatMap((pair) =>
        cells(pair).map((cell) => {
          const [r, c] = cell.split(",").map(Number);
          return Math.abs((pair[0].at(r, c) ?? 0) - (pair[1].at(r, c) ?? 0));
        }),
      ),
    );
  });
  assert.ok(difference <= 0.5 / 255 + 1e-4, `a weight differs by ${difference}`);
  await closed(page);
});

test("a tile selects the head, whose scores are drawn", async () => {
  const page = await open("series.html");
  await page.locator('#checkpoints [data-series-head="4"]').click();
  assert.equal(await page.evaluate(() => state.head), 4);
  assert.match(await page.locator("#checkpoints h3").last().textContent(), /^head cross\.0\.0 at step 600$/);
  const chart = page.locator("#checkpoints .chart");
  assert.match(await chart.textContent(), /^Scores of head cross\.0\.0/);
  await chart.locator(".picture").focus();
  await page.keyboard.press("ArrowRight");
  assert.match(await chart.locator(".readout").textContent(), /^step 0: .* 0\.\d+/);
  await closed(page);
});

test("every width, light and dark", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await open("series.html", { colorScheme });
    for (const width of [360, 1280]) {
      await page.setViewportSize({ width, height: 900 });
      await drawn(page);
      assert.ok(
        await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth),
        `too wide at ${width}`,
      );
      await page.locator("#checkpoints").screenshot({ path: join(directory, `series_${width}_${colorScheme}.png`) });
    }
    await closed(page);
  }
});

await finish();
