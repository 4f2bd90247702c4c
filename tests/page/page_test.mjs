// What people do with a report, in a real browser. Usage: page_test.mjs DIRECTORY CHROMIUM
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [directory, executablePath] = [resolve(process.argv[2]), process.argv[3]];
const { chromium } = createRequire(join(directory, "package.json"))("playwright-core");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

// A page with the report, and everything that it complained about or asked for.
async function open(name, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.complaints = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && page.complaints.push(message.text()));
  page.on("pageerror", (error) => page.complaints.push(String(error)));
  page.on("dialog", (dialog) => { page.complaints.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => page.complaints.push(`request: ${request.url()}`));
  const url = pathToFileURL(join(directory, name)).href;
  const start = Date.now();
  await page.goto(url, { waitUntil: "load" });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  page.opened = Date.now() - start;
  assert.deepEqual(page.complaints.filter((text) => text === `request: ${url}`).length, 1);
  page.complaints = page.complaints.filter((text) => text !== `request: ${url}`);
  return page;
}

async function closed(page) {
  assert.deepEqual(page.complaints, []);
  await page.context().close();
}

const tests = [];
const test = (name, run) => tests.push({ name, run });

const picture = (page, selector) => page.locator(selector).first().evaluate((canvas) => canvas.toDataURL());
const kMap = '.map[aria-label^="Attention"]';

// Where cell (row, column) of the enlarged map is, inside the map.
async function cell(page, row, column) {
  return page.evaluate(([r, c]) => {
    const map = attention(state.head);
    const node = document.querySelector('.map[aria-label^="Attention"]');
    const box = layOut(map, node.clientWidth, document.createElement("canvas").getContext("2d"));
    return { x: box.left + (c + 0.5) * box.cell, y: box.top + (r + 0.5) * box.cell, value: map.at(r, c), step: map.step };
  }, [row, column]);
}

test("size and start", async () => {
  const size = statSync(join(directory, "large.html")).size;
  assert.ok(size < 5e6, `large.html has ${size} bytes`);
  const page = await open("large.html");
  console.log(`page: large.html has ${(size / 1e6).toFixed(2)} MB and opened in ${page.opened} ms`);
  assert.equal(await page.title(), "reverse · thimble inspect");
  assert.equal(await page.locator(".tile").count(), 32);
  assert.equal(await page.locator("#table tbody tr").count(), 32);
  const sections = await page.locator("main section").evaluateAll((all) => all.map((s) => s.id));
  assert.deepEqual(sections, ["training", "table", "heads", "circuits", "time", "removal", "attribution", "rollout"]);
  await closed(page);
});

test("the pointer says the value", async () => {
  const page = await open("large.html");
  const map = page.locator(kMap);
  await map.scrollIntoViewIfNeeded();
  const seen = await cell(page, 40, 39);
  await map.hover({ position: seen });
  const tip = await map.locator(".tip").textContent();
  assert.ok(Math.abs(parseFloat(tip) - seen.value) <= seen.step, `${tip} is not ${seen.value}`);
  const tokens = await page.evaluate(() => example().tokens);
  assert.ok(tip.endsWith(`query 40 ${tokens[40]} → key 39 ${tokens[39]}`), tip);
  await map.hover({ position: await cell(page, 3, 40) });
  assert.match(await map.locator(".tip").textContent(), /^masked/);
  await closed(page);
});

test("what is packed is what was given", async () => {
  const page = await open("small.html");
  const rows = await page.evaluate(() => {
    const map = attention(0);
    return Array.from({ length: map.rows }, (_, r) => Array.from({ length: map.columns }, (_, c) => map.at(r, c)).reduce((a, b) => a + b));
  });
  for (const sum of rows) assert.ok(Math.abs(sum - 1) < 12 / 65535, `a row sums to ${sum}`);
  await closed(page);
});

test("a query shows its keys", async () => {
  const page = await open("large.html");
  const weights = () => page.locator(".keys .chip").evaluateAll((all) => all.map((chip) => chip.dataset.weight));
  const expected = (query) => page.evaluate((q) => Array.from({ length: 64 }, (_, c) => String(attention(state.head).at(q, c) ?? "masked")), query);
  const queries = page.locator('.strip[aria-label="queries"] .chip');
  await queries.nth(20).click();
  assert.deepEqual(await weights(), await expected(20));
  assert.equal((await weights()).filter((w) => w === "masked").length, 43);
  await page.keyboard.press("ArrowRight");
  assert.equal(await queries.nth(21).getAttribute("aria-pressed"), "true");
  assert.deepEqual(await weights(), await expected(21));
  await page.locator(kMap).click({ position: await cell(page, 9, 4) });
  assert.deepEqual(await weights(), await expected(9));
  await closed(page);
});

test("the table sorts", async () => {
  const page = await open("large.html");
  const column = (name) => page.locator("#table thead th").filter({ hasText: name }).first();
  const values = async (name) => {
    const index = await column(name).evaluate((th) => [...th.parentNode.children].indexOf(th));
    return page.locator("#table tbody tr").evaluateAll((rows, c) => rows.map((row) => parseFloat(row.children[c].querySelector(".number").title)), index);
  };
  const sorted = (xs, sign) => [...xs].sort((a, b) => sign * (a - b));
  for (const name of ["entropy", "induction", "accuracy without", "importance"]) {
    await column(name).getByRole("button").click();
    assert.equal(await column(name).getAttribute("aria-sort"), "descending");
    assert.deepEqual(await values(name), sorted(await values(name), -1));
    await page.keyboard.press("Enter");
    assert.equal(await column(name).getAttribute("aria-sort"), "ascending");
    assert.deepEqual(await values(name), sorted(await values(name), 1));
  }
  assert.equal(await page.locator('#table [aria-sort="ascending"]').count(), 1);
  await closed(page);
});

test("heads, examples and the mean can be switched", async () => {
  const page = await open("large.html");
  const look = async () => [await picture(page, `${kMap} canvas`), await picture(page, ".tile:not([aria-pressed=true]) canvas")];
  const [map, tile] = await look();
  await page.locator('.tile[data-head="11"]').click();
  assert.match(await page.locator("#heads h3", { hasText: "Layer" }).textContent(), /^Layer 1 head 3/);
  assert.match(await page.locator("#circuits .about").first().textContent(), /layer 1 head 3/);
  assert.equal(await page.locator('#table tr[aria-selected="true"]').getAttribute("data-head"), "11");
  const [other] = await look();
  assert.notEqual(other, map);
  await page.locator('#table tr[data-head="0"] button').click();
  assert.equal((await look())[0], map);

  await page.locator('[data-choice="example"]').selectOption("1");
  assert.match(await page.locator(".result").textContent(), /Example 2: ✗ \d+ of 48 predictions are wrong/);
  assert.ok(await page.locator(".answer.wrong").count() > 0);
  const [nextMap, nextTile] = await look();
  assert.ok(nextMap !== map && nextTile !== tile);
  await page.getByRole("button", { name: "previous example" }).click();
  assert.match(await page.locator(".result").textContent(), /Example 1: ✓ all 48/);
  assert.deepEqual(await look(), [map, tile]);

  await page.locator('[data-choice="show"]').selectOption("mean");
  assert.match(await page.locator(".result").textContent(), /1,000 sequences/);
  assert.equal(await page.locator(".answer").count(), 0);
  await page.locator('[data-choice="full colour at"]').selectOption("0.2");
  assert.match(await page.locator("#heads .legend").textContent(), /≥ 0.2/);
  await closed(page);
});

test("the keyboard is enough", async () => {
  const page = await open("large.html");
  await page.locator('.tile[aria-pressed="true"]').focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.evaluate(() => document.activeElement.dataset.head), "9");
  assert.equal(await page.evaluate(() => state.head), 9);
  await page.keyboard.press("Tab");
  assert.ok(await page.evaluate((map) => document.activeElement.matches(map), kMap));
  for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
  assert.match(await page.locator(`${kMap} .tip`).textContent(), /query 2 .* → key 1 /);
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => state.query), 2);
  await page.keyboard.press("Escape");
  assert.ok(await page.locator(`${kMap} .tip`).isHidden());
  await page.locator("#training .picture").first().focus();
  await page.keyboard.press("ArrowRight");
  assert.match(await page.locator("#training .says").first().textContent(), /^step 0: train 2\.85/);
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(outline, "solid");
  await closed(page);
});

test("odd tokens, and sections without data", async () => {
  const page = await open("small.html");
  const sections = await page.locator("main section").evaluateAll((all) => all.map((s) => s.id));
  assert.deepEqual(sections, ["table", "heads", "circuits", "attribution", "rollout"]);
  assert.match(await page.locator("#attribution").textContent(), /Not offered: post-norm/);
  assert.match(await page.locator("#rollout h2").textContent(), /heuristic/);
  assert.equal(await page.locator("main img, main script").count(), 0);
  const tokens = await page.locator('.strip[aria-label="queries"] .token').evaluateAll((all) => all.map((t) => t.title));
  for (const odd of ["</script>", "<img src=x onerror=alert(1)>", "&amp;", "\u2028", "😀"])
    assert.ok(tokens.includes(odd) || await page.evaluate((t) => report.tokens.includes(t), odd), `${odd} is lost`);
  assert.equal(await page.locator(".keys .chip.hidden").count(), 0);
  await page.locator('[data-choice="example"]').selectOption("2");
  assert.equal(await page.locator(".result").textContent(), "Example 3. The model answers ✗ 0not é.");
  await closed(page);
});

test("an encoder-decoder has maps between two sequences", async () => {
  const page = await open("pair.html");
  const chips = (name) => page.locator(`.strip[aria-label="${name}"] .chip > .token`).evaluateAll((all) => all.map((t) => t.title));
  const e = await page.evaluate(() => example());
  assert.deepEqual(await page.locator(".grid h4").allTextContents(), ["encoder 0", "decoder 0", "cross 0"]);
  assert.equal(await page.locator(".tile").count(), 6);
  for (const [head, title, queries, keys] of [[0, "Encoder 0 head 0", "source", "source"], [3, "Decoder 0 head 1", "tokens", "tokens"],
    [4, "Cross 0 head 0", "tokens", "source"]]) {
    await page.locator(`.tile[data-head="${head}"]`).click();
    assert.ok((await page.locator("#heads h3", { hasText: title }).textContent()).startsWith(title));
    assert.deepEqual(await chips("queries"), e[queries]);
    assert.deepEqual(await chips("keys of the query"), e[keys]);
    assert.equal(await page.locator(".answer").count(), queries === "tokens" ? e.tokens.length : 0);
    const { rows, columns, sums, masked } = await page.evaluate(() => {
      const map = attention(state.head);
      const all = Array.from({ length: map.rows }, (_, r) => Array.from({ length: map.columns }, (_, c) => map.at(r, c)));
      return { rows: map.rows, columns: map.columns, sums: all.map((row) => row.reduce((a, b) => a + b)), masked: all.flat().includes(null) };
    });
    assert.deepEqual([rows, columns], [e[queries].length, e[keys].length]);
    for (const sum of sums) assert.ok(Math.abs(sum - 1) < columns / 65535, `a row sums to ${sum}`);
    assert.equal(masked, title.startsWith("Decoder"));
  }
  // Row and column of the pointer are those of two sequences.
  const map = page.locator(kMap);
  await map.scrollIntoViewIfNeeded();
  const seen = await cell(page, e.tokens.length - 1, e.source.length - 1);
  await map.hover({ position: seen });
  const tip = await map.locator(".tip").textContent();
  assert.ok(tip.endsWith(`query ${e.tokens.length - 1} ${e.tokens.at(-1)} → key ${e.source.length - 1} ${e.source.at(-1)}`), tip);
  assert.ok(Math.abs(parseFloat(tip) - seen.value) <= seen.step, `${tip} is not ${seen.value}`);
  await page.locator('[data-choice="show"]').selectOption("mean");
  assert.deepEqual([(await chips("queries")).length, (await chips("keys of the query")).length], [7, 6]);
  assert.match(await page.locator("#attribution").textContent(), /Not offered: encoder-decoder/);
  assert.match(await page.locator("#table tbody").textContent(), /cross 0/);
  await closed(page);
});

test("every width, light and dark", async () => {
  for (const width of [360, 1280, 1920])
    for (const colorScheme of ["light", "dark"])
      for (const name of ["large", "small", "pair"]) {
        const page = await open(`${name}.html`, { viewport: { width, height: width < 400 ? 740 : 900 }, colorScheme });
        const { scroll, client, theme } = await page.evaluate(() => ({ scroll: document.documentElement.scrollWidth,
          client: document.documentElement.clientWidth, theme: document.documentElement.dataset.theme }));
        assert.ok(scroll <= client, `${name} at ${width}: ${scroll} wide`);
        assert.equal(theme, colorScheme);
        // Zero is the background.
        assert.deepEqual(await page.evaluate(() => `rgb(${colour(0, 1, false).join(", ")})`),
          await page.evaluate(() => getComputedStyle(document.querySelector(".panel")).backgroundColor));
        await page.screenshot({ path: join(directory, `${name}_${width}_${colorScheme}.png`), fullPage: true });
        await page.locator(".theme").click();
        assert.notEqual(await page.evaluate(() => document.documentElement.dataset.theme), colorScheme);
        await closed(page);
      }
});

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
