// Tests of attention that is weighted by values. Usage: values_test.mjs DIRECTORY CHROMIUM
import assert from "node:assert/strict";

import { closed, finish, open, pointAt, sums, test } from "./browser.mjs";

test("attention is weighted by the lengths of values, in every kind of attention", async () => {
  const page = await open("pair.html");
  const box = page.getByLabel("weighted by values");
  const note = page.locator("#heads .about", { hasText: "Kobayashi et al. 2020" });
  assert.ok(await note.isHidden());
  for (const head of [1, 2, 5]) {
    await page.locator(`.tile[data-head="${head}"]`).click();
    // The lengths of the keys, and the weights without them.
    const [weights, lengths] = await page.evaluate(() => {
      const { layer, head: h } = report.heads[state.head];
      const map = attention(state.head);
      const { shape, scale } = example().value_norms[layer];
      const { numbers } = unpack(example().value_norms[layer]);
      const rows = map.rowLabels.map((_, r) => map.columnLabels.map((_, c) => map.at(r, c)));
      return [rows, [...numbers.slice(h * shape[1], (h + 1) * shape[1])].map((n) => (n * scale) / 32767)];
    });
    assert.ok(lengths.every((length) => length > 0) && new Set(lengths).size > 1);
    await box.check();
    assert.ok(await note.isVisible());
    for (const sum of (await sums(page)).sums) assert.ok(Math.abs(sum - 1) < 1e-6, `a row sums to ${sum}`);
    const shown = await page.evaluate(() => {
      const map = attention(state.head);
      return map.rowLabels.map((_, r) => map.columnLabels.map((_, c) => map.at(r, c)));
    });
    for (const [r, row] of weights.entries()) {
      const sum = row.reduce((all, weight, c) => all + weight * lengths[c], 0);
      for (const [c, weight] of row.entries())
        if (weight === null) assert.equal(shown[r][c], null);
        else assert.ok(Math.abs(shown[r][c] - (weight * lengths[c]) / sum) < 1e-9, `${shown[r][c]} in row ${r}, column ${c}`);
    }
    await pointAt(page, weights.length - 1, 0);
    assert.match(await page.locator(".explorer .legend").first().textContent(), /weighted by values/);
    await box.uncheck();
  }
  await page.locator('[data-choice="show"]').selectOption("mean");
  assert.ok(await box.isHidden());
  await closed(page);
});

test("a report without lengths of values has no such choice", async () => {
  const page = await open("large.html");
  assert.ok(await page.getByLabel("weighted by values").isHidden());
  await closed(page);
});

await finish();
