// Tests of the report in a browser. Usage: page_test.mjs DIRECTORY CHROMIUM
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";

import { browser, cell, chips, closed, directory, drawn, finish, kMap, open, picture, pointAt, sums, test } from "./browser.mjs";

test("size and start", async () => {
  const size = statSync(join(directory, "large.html")).size;
  assert.ok(size < 5e6, `large.html has ${size} bytes`);
  const page = await open("large.html");
  console.log(`page: large.html has ${(size / 1e6).toFixed(2)} MB and opened in ${page.opened} ms`);
  assert.equal(await page.title(), "reverse · thimble inspect");
  assert.equal(await page.locator(".tile").count(), 32);
  assert.equal(await page.locator("#table tbody tr").count(), 32);
  const sections = await page.locator("main section").evaluateAll((all) => all.map((s) => s.id));
  assert.deepEqual(sections, ["heads", "table", "training", "time", "circuits", "ablation", "joint", "attribution", "rollout"]);
  assert.equal(await page.locator("#attribution .warning").textContent(), "Warning: 2 of 40 logits are not the sum of their parts.");
  await closed(page);
});

test("the pointer and the keyboard give a cell's weight", async () => {
  const page = await open("large.html#head=0.0");
  const tokens = await page.evaluate(() => example().tokens);
  const tip = await pointAt(page, 40, 39);
  assert.ok(tip.endsWith(`query 40 ${tokens[40]} → key 39 ${tokens[39]}`), tip);
  assert.match(await pointAt(page, 3, 40), /^masked/);
  await page.locator(kMap).focus();
  for (const key of ["Escape", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
  assert.match(await page.locator(`${kMap} .tip`).textContent(), /query 2 .* → key 1 /);
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => state.query), 2);
  await page.locator("#training .picture").first().focus();
  await page.keyboard.press("ArrowRight");
  assert.match(await page.locator("#training .readout").first().textContent(), /^step 0: train 2\.85/);
  assert.match(await page.locator("#training figcaption").first().textContent(), /^Loss.*lowest possible loss$/);
  assert.match(await page.locator("#training figcaption").last().textContent(), /^Accuracy.*chance$/);
  await page.locator('.tile[aria-pressed="true"]').focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.evaluate(() => state.head), 9);
  await closed(page);
});

test("a query shows its keys", async () => {
  const page = await open("large.html");
  const weights = () => page.locator(".keys .chip").evaluateAll((all) => all.map((chip) => chip.dataset.weight));
  const expected = (query) =>
    page.evaluate((q) => Array.from({ length: 64 }, (_, c) => String(attention(state.head).at(q, c) ?? "masked")), query);
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
    return page
      .locator("#table tbody tr")
      .evaluateAll((rows, c) => rows.map((row) => parseFloat(row.children[c].querySelector(".number").title)), index);
  };
  const sorted = (xs, sign) => [...xs].sort((a, b) => sign * (a - b));
  for (const name of ["entropy", "induction", "Δ accuracy", "gradient"]) {
    await column(name).getByRole("button").click();
    assert.equal(await column(name).getAttribute("aria-sort"), "descending");
    assert.deepEqual(await values(name), sorted(await values(name), -1));
    await page.keyboard.press("Enter");
    assert.equal(await column(name).getAttribute("aria-sort"), "ascending");
    assert.deepEqual(await values(name), sorted(await values(name), 1));
  }
  assert.equal(await page.locator('#table [aria-sort="ascending"]').count(), 1);
  for (const [name, cells] of [
    ["head", "th"],
    ["label", ".claim"],
  ]) {
    await column(name).getByRole("button").click();
    const words = await page.locator(`#table tbody ${cells}`).allTextContents();
    assert.deepEqual(words, words.toSorted(), `not in the order of ${name}`);
  }
  // A phone has room for one score and one effect.
  await page.setViewportSize({ width: 390, height: 800 });
  const shown = await page.locator("#table thead th:visible").allTextContents();
  const scores = await page.evaluate(() => Object.values(kTargets).map(([title]) => title));
  assert.deepEqual([shown[0], shown[1], shown[3], shown.length], ["head", "label", "Δ accuracy", 4]);
  assert.ok(scores.includes(shown[2]), shown[2]);
  await closed(page);
});

test("heads that are ablated together", async () => {
  const page = await open("large.html");
  const ablation = page.locator("#ablation");
  assert.ok(await ablation.isHidden());
  await page.locator('nav a[href="#ablation"]').click();
  await ablation.locator(".facts").waitFor();
  assert.deepEqual(await ablation.locator(".facts dd").allTextContents(), ["9 of 32", "21 of 32", "25 of 32"]);
  await ablation.locator(".picture").first().focus();
  for (let k = 0; k < 28; ++k) await page.keyboard.press("ArrowRight");
  const readout = /^heads ablated 27: by importance 30\.\d+ %, after ablating head \d\.\d · greedily 79\.\d+ %, after/;
  assert.match(await ablation.locator(".readout").first().textContent(), readout);
  const names = await ablation.locator(".picture .name").allTextContents();
  assert.equal(names.join(), "by importance,greedily,by importance,greedily");

  const joint = await page.evaluate(() => report.joint_ablation);
  assert.match(
    await page.locator("#joint .about").textContent(),
    /^Zero ablation of 496 pairs on 400 sequences\. Of heads .*, 500 larger sets on 100 sequences\. Not every .*, 0\.98 points or 0\.022 in capped loss/,
  );
  const backups = await page.locator("#joint tbody th").allTextContents();
  assert.equal(backups.join("; "), joint.groups.flatMap((set) => set.backups.map((backup) => backup.name)).join("; "));
  const pair = joint.groups[0];
  const map = page.locator('#joint .map[aria-label*="in points"]');
  await map.scrollIntoViewIfNeeded();
  const all = await page.evaluate(() => report.heads.map((head) => head.name));
  const [first, second] = pair.names.map((name) => all.indexOf(name));
  await map.focus();
  const move = async (key, times) => {
    for (let k = 0; k < times; ++k) await page.keyboard.press(key);
  };
  await page.keyboard.press("ArrowDown"); // cell (0, 0)
  const shown = (effect) => `${(100 * effect.accuracy_change).toFixed(2)} points, loss +${effect.loss_change.toFixed(3)}`.replace("-", "−");
  const alone = await page.evaluate(() => report.heads.map((head) => head.ablation.zero));
  assert.equal(await map.locator(".tip").textContent(), `0.0alone ${shown(alone[0])}`);
  await move("ArrowDown", second);
  await move("ArrowRight", first);
  const [stays, gone] = [pair.names[1], pair.names[0]];
  const both = joint.pairs.find((one) => one.names.join() === pair.names.join());
  const expected = `${stays} without ${gone}${stays} alone ${shown(alone[second])}both ${shown(both)}`;
  assert.equal(await map.locator(".tip").textContent(), expected);
  const largest = 100 * Math.max(...joint.pairs.flatMap((one) => one.worth.accuracy.map(Math.abs)));
  assert.equal(await page.locator("#joint .ends").first().textContent(), `−${largest.toFixed(2)}0${largest.toFixed(2)}`);
  await closed(page);
  const trained = await open("pair.html");
  assert.match(await trained.locator("#joint .about").textContent(), /^Zero ablation of 15 pairs on 200 sequences\. /);
  const others = await trained.evaluate(() => {
    const text = () => jointAblation().textContent;
    report.joint_ablation.groups = [];
    const none = text();
    report.scale.at_chance = true;
    return [none, text(), chanceWarning().textContent, (report.scale.at_chance = null) ?? chanceWarning().textContent];
  });
  for (const [i, part] of [
    "No head is a backup.",
    "The model is no better than chance",
    "The model is no better than chance",
    "The model is not shown to be better than chance",
  ].entries())
    assert.ok(others[i].includes(part), others[i]);
  await closed(trained);
});

test("heads, examples and the mean can be chosen", async () => {
  const page = await open("large.html#head=0.0");
  const maps = async () => [await picture(page, `${kMap} canvas`), await picture(page, ".tile:not([aria-pressed=true]) canvas")];
  const [map, tile] = await maps();
  await page.locator('.tile[data-head="11"]').click();
  assert.match(await page.locator("#heads h3", { hasText: "head 1.3" }).textContent(), /^head 1.3/);
  assert.match(await page.locator("#circuits .about").first().textContent(), /head 1.3/);
  assert.equal(await page.locator('#table tr[aria-selected="true"]').getAttribute("data-head"), "11");
  assert.notEqual((await maps())[0], map);
  await page.locator('#table tr[data-head="0"] button').click();
  assert.equal((await maps())[0], map);

  await page.locator('[data-choice="example"]').selectOption("1");
  assert.match(await page.locator(".result").textContent(), /Example 2: ✗ \d+ of 48 predictions are wrong/);
  assert.ok((await page.locator(".prediction.wrong").count()) > 0);
  const [nextMap, nextTile] = await maps();
  assert.ok(nextMap !== map && nextTile !== tile);
  await page.getByRole("button", { name: "previous example" }).click();
  assert.match(await page.locator(".result").textContent(), /Example 1: ✓ all 48 predictions are correct/);
  assert.deepEqual(await maps(), [map, tile]);

  await page.locator('[data-choice="show"]').selectOption("mean");
  assert.match(await page.locator(".result").textContent(), /1,000 sequences/);
  assert.equal(await page.locator(".prediction").count(), 0);
  await page.locator('[data-choice="full color at"]').selectOption("0.2");
  assert.match(await page.locator("#heads .legend").textContent(), /≥ 0.2/);
  await closed(page);
});

test("odd tokens, and sections without data", async () => {
  const page = await open("small.html");
  const sections = await page.locator("main section").evaluateAll((all) => all.map((s) => s.id));
  assert.deepEqual(sections, ["heads", "table", "training", "circuits", "attribution", "rollout"]);
  assert.match(await page.locator("#attribution").textContent(), /Not available: post-norm/);
  assert.match(await page.locator("#rollout h2").textContent(), /heuristic/);
  assert.equal(await page.locator("main img, main script").count(), 0);
  for (const sum of (await sums(page)).sums) assert.ok(Math.abs(sum - 1) < 12 / 65535, `a row sums to ${sum}`);
  const tokens = [...(await chips(page, "queries")), ...(await page.evaluate(() => report.tokens))];
  for (const odd of ["</script>", "<img src=x onerror=alert(1)>", "&amp;", "\\u{2028}\\u{202e}\\u{200b}", "👩‍💻"])
    assert.ok(tokens.includes(odd), `${odd} is lost`);
  const shown = await page.evaluate(() =>
    [...document.querySelectorAll("body *:not(script)")].flatMap((e) => [...e.attributes].map((a) => a.value).concat(e.innerText ?? "")),
  );
  assert.ok(!/[\u0080-\u009f\u200b\u2028\u202e]/.test(shown.join(" ")), "a hidden character is on the page");
  await page.locator('[data-choice="example"]').selectOption("2");
  assert.equal(await page.locator(".result").textContent(), "Example 3. Prediction: ✗ 0target é.");
  await closed(page);
});

test("a token map names what its rows and columns are", async () => {
  const page = await open("small.html");
  for (const [key, title, row, column] of [
    ["qk_tokens", "QK in tokens", "query token", "key token"],
    ["ov_tokens", "OV in tokens", "attended token", "logit of token"], // as in the JSON report
  ]) {
    await page.locator(`.map[aria-label^="${title}"]`).focus();
    for (const arrow of ["Right", "Down", "Down", "Right", "Right", "Right"]) await page.keyboard.press(`Arrow${arrow}`);
    const tip = await page.locator(`.map[aria-label^="${title}"] .tip`).textContent();
    const [value, tokens] = await page.evaluate((name) => {
      const packed = report.heads[state.head].circuits[name];
      const { numbers, step } = unpack(packed);
      return [numbers[2 * packed.shape[1] + 3] * step, report.tokens.map(visible)];
    }, key);
    assert.ok(tip.endsWith(`${row} ${tokens[2]}, ${column} ${tokens[3]}`), tip);
    assert.ok(Math.abs(parseFloat(tip.replace("−", "-")) - value) < 1e-3, `${tip} is not ${value}`);
  }
  await closed(page);
});

test("an encoder-decoder has maps between two sequences", async () => {
  const page = await open("pair.html");
  const e = await page.evaluate(() => example());
  assert.deepEqual(await page.locator(".grid h4").allTextContents(), ["encoder.0", "decoder.0", "cross.0"]);
  assert.equal(await page.locator(".tile").count(), 6);
  for (const [head, title, queries, keys] of [
    [0, "head encoder.0.0", "source", "source"],
    [3, "head decoder.0.1", "tokens", "tokens"],
    [4, "head cross.0.0", "tokens", "source"],
  ]) {
    await page.locator(`.tile[data-head="${head}"]`).click();
    assert.ok((await page.locator("#heads h3", { hasText: title }).textContent()).startsWith(title));
    assert.deepEqual(await chips(page, "queries"), e[queries]);
    assert.deepEqual(await chips(page, "keys of the query"), e[keys]);
    assert.equal(await page.locator(".prediction").count(), queries === "tokens" ? e.tokens.length : 0);
    const map = await sums(page);
    assert.deepEqual([map.rows, map.columns], [e[queries].length, e[keys].length]);
    for (const sum of map.sums) assert.ok(Math.abs(sum - 1) < map.columns / 65535, `a row sums to ${sum}`);
    assert.equal(map.masked, title.startsWith("head decoder"));
  }
  const [row, column] = [e.tokens.length - 1, e.source.length - 1];
  const tip = await pointAt(page, row, column);
  assert.ok(tip.endsWith(`query ${row} ${e.tokens[row]} → key ${column} ${e.source[column]}`), tip);
  await page.locator('[data-choice="show"]').selectOption("mean");
  assert.deepEqual([(await chips(page, "queries")).length, (await chips(page, "keys of the query")).length], [7, 6]);
  assert.match(await page.locator("#attribution").textContent(), /Not available: encoder-decoder/);
  assert.match(await page.locator("#table tbody").textContent(), /cross\.0/);
  await closed(page);
});

test("two heads are compared side by side", async () => {
  const page = await open("large.html#head=0.0");
  const other = '.map[aria-label^="Attention of the compared"]';
  assert.ok(await page.locator(other).isHidden());
  await page.locator('[data-choice="compare with"]').selectOption({ label: "head 2.2" });
  assert.equal(await page.locator(".tile.beside").getAttribute("data-head"), "18");
  assert.deepEqual(await page.locator("#heads .stack h4").allTextContents(), ["head 0.0", "head 2.2"]);
  // Each gives its own weight at the same cell.
  await pointAt(page, 2, 1);
  const tips = (await page.locator(".explorer .tip").allTextContents()).map(parseFloat);
  const weights = await page.evaluate(() => [0, 18].map((head) => attention(head).at(2, 1)));
  for (const [i, weight] of weights.entries()) assert.ok(Math.abs(tips[i] - weight) <= 1 / 255, `${tips[i]} is not ${weight}`);
  await page.locator('.tile[data-head="3"]').click({ modifiers: ["Shift"] });
  assert.equal(await page.evaluate(() => state.head), 0);
  assert.equal(await page.locator('[data-choice="compare with"]').inputValue(), "3");
  await page.locator('[data-choice="compare with"]').selectOption("");
  assert.ok(await page.locator(other).isHidden());
  await closed(page);
});

test("the address names the head", async () => {
  const page = await open("large.html#head=1.3&beside=2.0&example=4");
  const shown = () => page.evaluate(() => [state.head, state.beside, state.source, state.example]);
  const hash = (wanted) => page.waitForFunction((text) => location.hash === text, wanted);
  assert.deepEqual(await shown(), [11, 16, "example", 3]);
  await page.locator('.tile[data-head="20"]').click();
  await hash("#head=2.4&beside=2.0&example=4");
  await page.locator('[data-choice="compare with"]').selectOption("");
  await page.locator('[data-choice="show"]').selectOption("mean");
  await hash("#head=2.4&show=mean");
  await page.evaluate(() => {
    location.hash = "#head=0.5";
  });
  await page.waitForFunction(() => state.head === 5);
  await closed(page);
  for (const odd of ["#head=9.9", "#head=__proto__.0.0", "#head=cross.0.1&example=99", "#%"]) {
    const other = await open(`pair.html${odd}`);
    const labeled = await other.evaluate(() => bestHead());
    assert.deepEqual(await other.evaluate(() => [state.head, state.beside, state.example]), [odd.includes("cross") ? 5 : labeled, null, 0]);
    await closed(other);
  }
});

test("a map can be saved", async () => {
  const page = await open("large.html#head=0.0");
  const saved = async (section, name) => {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.locator(section).getByRole("button", { name }).first().click(),
    ]);
    return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
  };
  const svg = await saved(".explorer", "save SVG");
  assert.equal(svg.name, "reverse_head_0_0_example_1.svg");
  // The rectangles over a row of cells have the colors of the row's weights.
  const reader = await browser.newPage();
  const drawing = await reader.evaluate((text) => {
    const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    const read = (node, names) => names.map((name) => node.getAttribute(name));
    return {
      name: root.tagName,
      texts: [...root.querySelectorAll("text")].map((node) => node.textContent),
      rectangles: [...root.querySelectorAll("rect")].map((node) => read(node, ["x", "y", "width", "height", "fill"])),
    };
  }, svg.bytes.toString());
  await reader.close();
  assert.equal(drawing.name, "svg");
  for (const text of ["head 0.0, example 1", "← query", "key →", "masked key", "0.5"]) assert.ok(drawing.texts.includes(text), text);
  const [cells, left, top, colors] = await page.evaluate(() => {
    const map = attention(0);
    const box = layOut(map, 860, document.createElement("canvas").getContext("2d"));
    const row = 40;
    const fill = (weight) => (weight === null ? "#e7ebef" : `rgb(${color(weight, 1, false).join(" ")})`);
    const size = Math.floor(box.cell);
    return [size, box.left + 12, box.top + 30 + row * size, Array.from({ length: 64 }, (_, c) => fill(map.at(row, c)))];
  });
  const row = drawing.rectangles.filter(([, y, , h]) => Number(y) === top && Number(h) === cells);
  assert.deepEqual(
    row.flatMap(([, , width, , fill]) => Array(Number(width) / cells).fill(fill)),
    colors,
  );
  assert.equal(Number(row[0][0]), left);
  const png = await saved("#circuits", "save PNG");
  assert.equal(png.name, "reverse_QK_in_tokens_head_0_0.png");
  assert.equal(png.bytes.subarray(1, 4).toString(), "PNG");
  assert.ok(png.bytes.readUInt32BE(16) > 1000 && png.bytes.readUInt32BE(20) > 1000);
  await closed(page);
});

test("every width, light and dark", async () => {
  const schemes = { large: ["light", "dark"], small: ["light"], pair: ["light"], own: ["dark"] };
  for (const [name, colorSchemes] of Object.entries(schemes))
    for (const colorScheme of colorSchemes) {
      const page = await open(`${name}.html`, { colorScheme });
      for (const width of colorScheme === colorSchemes[0] ? [360, 1920, 1280] : []) {
        await page.setViewportSize({ width, height: width < 400 ? 740 : 900 });
        await drawn(page);
        assert.ok(
          await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth),
          `${name} at ${width} is too wide`,
        );
      }
      await page.screenshot({ path: join(directory, `${name}_${colorScheme}.png`), fullPage: true });
      const background = await page.evaluate(() => getComputedStyle(document.querySelector(".panel")).backgroundColor);
      assert.equal(background, colorScheme === "dark" ? "rgb(21, 27, 35)" : "rgb(255, 255, 255)");
      assert.deepEqual(await page.evaluate(() => `rgb(${color(0, 1, false).join(", ")})`), background, "zero is the background");
      await page.locator(".theme").click();
      assert.notEqual(await page.evaluate(() => document.documentElement.dataset.theme), colorScheme);
      await closed(page);
    }
});

await finish();
