// Tests of means over sequences of different lengths. Usage: means_test.mjs DIRECTORY CHROMIUM
import assert from "node:assert/strict";

import { chips, closed, finish, open, pointAt, test } from "./browser.mjs";

test("means over sequences of different lengths say of how many each is, from the start and from the end", async () => {
  const page = await open("ragged.html");
  const show = page.locator('[data-choice="show"]');
  assert.ok(await page.locator(".means").isHidden());
  await show.selectOption("mean");
  assert.match(await page.locator(".means").textContent(), /rows need not sum to 1/);
  // The map ends where the longest sequence ends, at the ninth of twelve positions.
  assert.deepEqual(await chips(page, "queries"), [..."012345678"]);
  assert.match(await page.locator("#heads .legend").first().textContent(), /fewer than 30 sequences/);
  assert.match(await page.locator(".result").textContent(), /mean of 5 to 45 sequences\./);
  assert.ok((await pointAt(page, 0, 2)).endsWith("query 0 → key 2mean of 45 sequences"));
  assert.ok((await pointAt(page, 3, 0)).endsWith("query 3 → key 0mean of 35 sequences"));
  assert.ok((await pointAt(page, 8, 1)).endsWith("query 8 → key 1mean of 5 sequences"));
  await show.selectOption("mean-end");
  assert.deepEqual(
    await chips(page, "queries"),
    [..."987654321"].map((n) => `−${n}`),
  );
  assert.ok((await pointAt(page, 8, 8)).endsWith("query −1 → key −1mean of 45 sequences"));
  assert.ok((await pointAt(page, 0, 8)).endsWith("query −9 → key −1mean of 5 sequences"));
  // The last cell of the whole map is that of the last positions.
  const [shown, last] = await page.evaluate(() => {
    const { numbers, step } = unpack(report.heads[0].mean_weights_from_end);
    return [attention(0).at(8, 8), numbers.at(-1) * step];
  });
  assert.equal(shown, last);
  await page.waitForTimeout(200);
  assert.match(page.url(), /show=mean-end/);
  await closed(page);
});

await finish();
