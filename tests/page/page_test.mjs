// What people do with a report, in a real browser. Usage: page_test.mjs DIRECTORY CHROMIUM
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
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
  const [file, hash] = name.split(/(?=#)/);
  const url = pathToFileURL(join(directory, file)).href + (hash ?? "");
  const start = Date.now();
  await page.goto(url, { waitUntil: "load" });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  page.opened = Date.now() - start;
  const itself = (text) => text.split("#")[0] === `request: ${url.split("#")[0]}`;
  assert.equal(page.complaints.filter(itself).length, 1);
  page.complaints = page.complaints.filter((text) => !itself(text));
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
  assert.equal(await page.locator("#attribution .warning").textContent(), "Warning: 2 of 40 logits are not the sum of their parts.");
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
  await page.locator('[data-choice="full color at"]').selectOption("0.2");
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
  assert.match(await page.locator("#training figcaption").first().textContent(), /^Loss.*lowest possible$/);
  assert.match(await page.locator("#training figcaption").last().textContent(), /^Accuracy.*chance$/);
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(outline, "solid");
  await closed(page);
});

test("odd tokens, and sections without data", async () => {
  const page = await open("small.html");
  const sections = await page.locator("main section").evaluateAll((all) => all.map((s) => s.id));
  assert.deepEqual(sections, ["table", "heads", "circuits", "attribution", "rollout"]);
  assert.match(await page.locator("#attribution").textContent(), /Not available: post-norm/);
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
  assert.match(await page.locator("#attribution").textContent(), /Not available: encoder-decoder/);
  assert.match(await page.locator("#table tbody").textContent(), /cross 0/);
  await closed(page);
});

test("layers can be told apart where heads take two rows", async () => {
  const page = await open("large.html", { viewport: { width: 360, height: 740 } });
  const tops = await page.locator(".layer").first().locator(".tile").evaluateAll((all) => all.map((t) => Math.round(t.getBoundingClientRect().top)));
  assert.ok(new Set(tops).size > 1, "this width must break a layer");
  assert.deepEqual(await page.locator(".layer").evaluateAll((all) => all.map((layer) => layer.firstChild.textContent)),
    ["layer 0", "layer 1", "layer 2", "layer 3"]);
  assert.doesNotMatch(await page.locator("main").textContent(), /Rows are layers/);
  await closed(page);
});

// Average of the channels of pixels of a screenshot in a box, in the colors of a page that may load pictures.
async function lightness(page, clip) {
  const data = (await page.screenshot({ clip })).toString("base64");
  const reader = await browser.newPage();
  const mean = await reader.evaluate(async (source) => {
    const image = new Image();
    image.src = `data:image/png;base64,${source}`;
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, image.width, image.height);
    let sum = 0;
    for (let i = 0; i < data.length; i += 4) sum += data[i] + data[i + 1] + data[i + 2];
    return sum / (data.length / 4) / 3;
  }, data);
  await reader.close();
  return mean;
}

test("a table shows on which side there is more of it", async () => {
  for (const name of ["large", "reproduce"]) {
    const page = await open(`${name}.html`, { viewport: { width: 360, height: 740 } });
    const table = page.locator(".scroll:has(td)").last();
    await table.scrollIntoViewIfNeeded();
    assert.ok(await table.evaluate((node) => node.scrollWidth > node.clientWidth + 40), `${name}: the table must be wider than the page`);
    const edges = async () => {
      const box = await table.boundingBox();
      const strip = (x) => lightness(page, { x, y: box.y + 2, width: 4, height: 20 });
      return [await strip(box.x + 1), await strip(box.x + box.width - 5)];
    };
    const start = await edges();
    await table.evaluate((node) => { node.scrollLeft = node.scrollWidth; });
    const end = await edges();
    assert.ok(start[1] < end[1] - 15, `${name}: right edge ${start[1]} with more, ${end[1]} without`);
    assert.ok(end[0] < start[0] - 15, `${name}: left edge ${end[0]} with more, ${start[0]} without`);
    await closed(page);
  }
});

test("two heads stand side by side", async () => {
  const page = await open("large.html");
  const other = '.map[aria-label^="The head beside"]';
  assert.ok(await page.locator(other).isHidden());
  await page.locator('[data-choice="compare with"]').selectOption({ label: "layer 2 head 2" });
  assert.equal(await page.locator(".tile.beside").getAttribute("data-head"), "18");
  const [left, right] = [await page.locator(kMap).boundingBox(), await page.locator(other).boundingBox()];
  assert.ok(Math.abs(left.y - right.y) < 60 && right.x > left.x + left.width && Math.abs(left.width - right.width) < 2);
  assert.deepEqual(await page.locator(".explorer h4").allTextContents().then((all) => all.slice(-2)), ["Layer 0 head 0", "Layer 2 head 2"]);
  // Each says its own weight at the same cell.
  const tips = () => page.locator(".explorer .tip").allTextContents().then((all) => all.map(parseFloat));
  const weights = (r, c) => page.evaluate(([row, column]) => [0, 18].map((head) => attention(head).at(row, column)), [r, c]);
  await page.locator(kMap).scrollIntoViewIfNeeded();
  await page.locator(kMap).hover({ position: await cell(page, 2, 1) });
  for (const [i, weight] of (await weights(2, 1)).entries()) assert.ok(Math.abs((await tips())[i] - weight) <= 1 / 255);
  await page.locator(other).focus();
  for (const key of ["Escape", "ArrowDown"]) await page.keyboard.press(key);
  assert.deepEqual(await weights(0, 0), [1, 1]);
  for (const tip of await tips()) assert.equal(tip, 1);
  await page.locator('.tile[data-head="3"]').click({ modifiers: ["Shift"] });
  assert.equal(await page.evaluate(() => state.head), 0);
  assert.equal(await page.locator('[data-choice="compare with"]').inputValue(), "3");
  await page.locator('[data-choice="compare with"]').selectOption("");
  assert.ok(await page.locator(other).isHidden());
  assert.equal(await page.locator(".tile.beside").count(), 0);
  await closed(page);
});

test("the address names the head", async () => {
  const page = await open("large.html#head=layer.1.3&beside=layer.2.0&example=4");
  const shown = () => page.evaluate(() => [state.head, state.beside, state.source, state.example]);
  const hash = (wanted) => page.waitForFunction((text) => location.hash === text, wanted);
  assert.deepEqual(await shown(), [11, 16, "example", 3]);
  assert.ok(await page.locator("#heads").evaluate((node) => Math.abs(node.getBoundingClientRect().top) < 200), "the page starts at the heads");
  await page.locator('.tile[data-head="20"]').click();
  await hash("#head=layer.2.4&beside=layer.2.0&example=4");
  await page.locator('[data-choice="compare with"]').selectOption("");
  await page.locator('[data-choice="show"]').selectOption("mean");
  await hash("#head=layer.2.4&show=mean");
  await page.locator('nav a[href="#table"]').click();
  await hash("#head=layer.2.4&show=mean");
  assert.ok(await page.evaluate(() => scrollY) < await page.evaluate(() => document.querySelector("#heads").offsetTop));
  await page.evaluate(() => { location.hash = "#head=layer.0.5"; });
  await page.waitForFunction(() => state.head === 5);
  await page.close();
  for (const odd of ["#head=layer.9.9", "#head=__proto__.0.0", "#head=layer.1.3&example=99", "#%", "#table"]) {
    const other = await open(`large.html${odd}`);
    assert.deepEqual(await other.evaluate(() => [state.head, state.beside, state.example]), [odd.includes("1.3") ? 11 : 0, null, 0]);
    await closed(other);
  }
  const cross = await open("pair.html#head=cross.0.1");
  assert.match(await cross.locator("#heads h3", { hasText: "Cross" }).textContent(), /^Cross 0 head 1/);
  await closed(cross);
});

test("a map can be saved", async () => {
  const page = await open("large.html");
  const saved = async (section, name) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator(section).getByRole("button", { name }).first().click()]);
    return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
  };
  const svg = await saved(".explorer", "save SVG");
  assert.equal(svg.name, "reverse_layer_0_head_0_example_1.svg");
  // A drawing of its own: the rectangles over a row of cells have the colors of the row's weights.
  const reader = await browser.newPage();
  const drawn = await reader.evaluate((text) => {
    const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    document.body.append(root);
    const texts = [...root.querySelectorAll("text")];
    const rectangles = [...root.querySelectorAll("rect")].map((r) => ["x", "y", "width", "height", "fill"].map((name) => r.getAttribute(name)));
    const inside = texts.every((t) => { const [a, b] = [t.getBoundingClientRect(), root.getBoundingClientRect()]; return a.left >= b.left && a.right <= b.right && a.top >= b.top && a.bottom <= b.bottom; });
    return { name: root.tagName, texts: texts.map((t) => t.textContent), rectangles, inside };
  }, svg.bytes.toString());
  await reader.close();
  assert.equal(drawn.name, "svg");
  assert.ok(drawn.inside, "a text leaves the drawing");
  for (const text of ["layer 0 head 0, example 1", "← query", "key →", "masked key", "0.5"]) assert.ok(drawn.texts.includes(text), text);
  const [cells, left, top, colors] = await page.evaluate(() => {
    const map = attention(0), box = layOut(map, 860, document.createElement("canvas").getContext("2d"));
    const row = 40;
    return [Math.floor(box.cell), box.left + 12, box.top + 30 + row * Math.floor(box.cell),
      Array.from({ length: 64 }, (_, c) => (map.at(row, c) === null ? "#e7ebef" : `rgb(${color(map.at(row, c), 1, false).join(" ")})`))];
  });
  const row = drawn.rectangles.filter(([, y, , h]) => Number(y) === top && Number(h) === cells);
  assert.deepEqual(row.flatMap(([, , width, , fill]) => Array(Number(width) / cells).fill(fill)), colors);
  assert.equal(Number(row[0][0]), left);
  const png = await saved("#circuits", "save PNG");
  assert.equal(png.name, "reverse_QK_in_tokens_layer_0_head_0.png");
  assert.equal(png.bytes.subarray(1, 4).toString(), "PNG");
  assert.ok(png.bytes.readUInt32BE(16) > 1000 && png.bytes.readUInt32BE(20) > 1000);
  await closed(page);
});

test("the user's own input comes first", async () => {
  const page = await open("own.html");
  const tokens = await page.locator('.strip[aria-label="queries"] .chip > .token').allTextContents();
  const e = await page.evaluate(() => example());
  assert.ok(e.own && e.tokens.length === 5);
  assert.deepEqual(tokens, e.tokens);
  assert.match(await page.locator(".result").textContent(), /^Your input\. Under each query/);
  assert.deepEqual(await page.locator('.strip[aria-label="queries"] .answer').allTextContents(), e.predictions);
  assert.deepEqual(await page.locator('[data-choice="example"] option').allTextContents(), ["your input", "1 of 3", "2 of 3 ✗", "3 of 3 ✗"]);
  await page.getByRole("button", { name: "next example" }).click();
  assert.match(await page.locator(".result").textContent(), /^Example 1: ✓ all 9/);
  await page.waitForFunction(() => location.hash === "#head=layer.0.0&example=1");
  await page.getByRole("button", { name: "previous example" }).click();
  await page.waitForFunction(() => location.hash === "#head=layer.0.0&example=input");
  await closed(page);
  const pair = await open("own_pair.html");
  const own = await pair.evaluate(() => example());
  assert.deepEqual(own.source, ["5", "1", "0", "3", "3"]);
  assert.equal(await pair.locator(".result").textContent(), `Your input. The model answers ${own.predictions.join(" ")}.`);
  await closed(pair);
});

test("masked keys do not fill thumbnails with lines", async () => {
  const page = await open("large.html");
  const colors = await page.locator(".tile canvas").first().evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(Math.floor(canvas.width * 0.6), 2, Math.floor(canvas.width * 0.3), Math.floor(canvas.height * 0.4));
    return [...new Set(Array.from({ length: data.length / 4 }, (_, i) => data.slice(4 * i, 4 * i + 4).join(" ")))];
  });
  assert.deepEqual(colors, ["231 235 239 255"]);
  await closed(page);
});

test("a drawing keeps its texts inside", async () => {
  for (const name of ["head.svg", "usual_title.svg", "long_title.svg"]) {
    const page = await open(name);
    const outside = await page.evaluate(() => {
      const { width, height } = document.documentElement.viewBox.baseVal;
      return [...document.querySelectorAll("text")].filter((node) => {
        const { left, right, top, bottom } = node.getBoundingClientRect();
        return left < 0 || top < 0 || right > width || bottom > height;
      }).map((node) => node.textContent);
    });
    assert.deepEqual(outside, [], name);
    await closed(page);
  }
});

test("results of experiments are dark where the system is", async () => {
  const looks = [];
  for (const colorScheme of ["light", "dark"]) {
    const page = await open("reproduce.html", { colorScheme, viewport: { width: 360, height: 740 } });
    looks.push(await page.evaluate(() => [document.body, document.querySelector(".panel"), document.querySelector("h1")].map((node) => {
      const style = getComputedStyle(node);
      return node.tagName === "H1" ? style.color : style.backgroundColor;
    })));
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth));
    await page.screenshot({ path: join(directory, `reproduce_${colorScheme}.png`), fullPage: true });
    await closed(page);
  }
  assert.deepEqual(looks, [["rgb(244, 246, 248)", "rgb(255, 255, 255)", "rgb(27, 36, 48)"], ["rgb(13, 17, 22)", "rgb(21, 27, 35)", "rgb(230, 235, 241)"]]);
});

test("every width, light and dark", async () => {
  for (const width of [360, 1280, 1920])
    for (const colorScheme of ["light", "dark"])
      for (const name of ["large", "small", "pair", "own"]) {
        const page = await open(`${name}.html`, { viewport: { width, height: width < 400 ? 740 : 900 }, colorScheme });
        const { scroll, client, theme } = await page.evaluate(() => ({ scroll: document.documentElement.scrollWidth,
          client: document.documentElement.clientWidth, theme: document.documentElement.dataset.theme }));
        assert.ok(scroll <= client, `${name} at ${width}: ${scroll} wide`);
        assert.equal(theme, colorScheme);
        // Zero is the background.
        assert.deepEqual(await page.evaluate(() => `rgb(${color(0, 1, false).join(", ")})`),
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
