// Tests of what a report begins with. Usage: answer_test.mjs DIRECTORY CHROMIUM
import assert from "node:assert/strict";

import { cell, chips, closed, finish, kMap, open, test } from "./browser.mjs";

test("the answer comes first, and what can only be guessed is in parentheses", async () => {
  const page = await open("guessed.html");
  assert.equal(await page.title(), "runs, induction · thimble inspect");
  assert.equal(
    await page.locator(".lead").textContent(),
    "Task: the next token of a random sequence that repeats. 90.00 % of the answers that can be known are right (1,000 test sequences); 33 % of all answers are not among them: the first round can only be guessed.",
  );
  assert.deepEqual(await page.locator(".summaries li").allTextContents(), ["head 0.0 looks at the token before."]);
  // Nine of twelve positions have an answer, three of which can only be guessed.
  assert.match(await page.locator(".result").textContent(), /all 6 predictions of what can be known are correct/);
  const guessed = page.locator('.prediction[title^="not to be known: the first round"]');
  assert.equal(await guessed.count(), 3);
  assert.ok((await page.locator(".prediction", { hasText: /[✓✗]/ }).count()) === 6);
  const [e, query] = await page.evaluate(() => [example(), state.query]);
  assert.ok(e.targets[query] && !e.guessed[query]);
  // The first screen has a map, its query and the thumbnails.
  for (const selector of [kMap, ".tile canvas", '.strip [aria-pressed="true"]']) {
    const { y } = await page.locator(selector).first().boundingBox();
    assert.ok(y < 900, `${selector} begins at ${y}`);
  }
  await closed(page);
});

test("the first screen of a phone has the thumbnails and the map with its query", async () => {
  for (const name of ["guessed", "pair"]) {
    const page = await open(`${name}.html`, { viewport: { width: 390, height: 844 } });
    const [tile, map] = [await page.locator(".tile canvas").first().boundingBox(), await page.locator(kMap).boundingBox()];
    const query = await cell(page, await page.evaluate(() => state.query), 0);
    assert.ok(
      tile.y < map.y && map.y + query.y < 844,
      `${name}: thumbnails at ${tile.y}, map at ${map.y}, its query at ${map.y + query.y}`,
    );
    await closed(page);
  }
});

test("the user's own input comes first", async () => {
  const page = await open("own.html");
  const e = await page.evaluate(() => example());
  assert.ok(e.own && e.tokens.length === 5);
  assert.deepEqual(await chips(page, "queries"), e.tokens);
  assert.match(
    await page.locator(".result").textContent(),
    /^Your input\. Below each query: the prediction at that position; in parentheses: there is no answer\.$/,
  );
  const shown = e.predictions.map((token, i) => ([0, 4].includes(i) ? `(${token})` : token));
  assert.equal(await page.locator('.prediction[title="not to be known: there is no answer"]').count(), 2);
  assert.ok([1, 2, 3].includes(await page.evaluate(() => state.query)));
  const first = await page.locator(".lead").first().textContent();
  assert.equal(first, `Your input ${e.tokens.join(" ")} → ${shown.join(" ")} `);
  assert.deepEqual(await page.locator('.strip[aria-label="queries"] .prediction').allTextContents(), shown);
  assert.deepEqual(await page.locator('[data-choice="example"] option').allTextContents(), [
    "your input",
    "1 of 3",
    "2 of 3 ✗",
    "3 of 3 ✗",
  ]);
  await page.getByRole("button", { name: "next example" }).click();
  assert.match(await page.locator(".result").textContent(), /^Example 1: ✓ all 9/);
  await page.waitForFunction(() => location.hash === "#head=0.0&example=1");
  await page.getByRole("button", { name: "previous example" }).click();
  await page.waitForFunction(() => location.hash === "#head=0.0&example=input");
  await closed(page);
  const pair = await open("own_pair.html");
  const own = await pair.evaluate(() => example());
  assert.deepEqual(own.source, ["5", "1", "0", "3", "3"]);
  assert.equal(await pair.locator(".result").textContent(), `Your input. Prediction: ${own.predictions.join(" ")}.`);
  await closed(pair);
});

await finish();
