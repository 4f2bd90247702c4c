// Saves maps and curves in the lab, and opens the files alone.
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { click, closed, downloaded, open, put, textOf, yaml } from "./browser.mjs";
import { contrast, kReadable } from "./contrast.mjs";

// Clicks the button that saves as `extension` in an element, and returns the file.
async function saved(b, page, selector, extension) {
  const name = await page.$$eval(
    `${selector} .save button`,
    (buttons, wanted) => {
      const button = buttons.find((one) => one.textContent === `save ${wanted.toUpperCase()}`);
      button.click();
      return button.title;
    },
    extension,
  );
  assert.match(name, new RegExp(`as ${extension.toUpperCase()}$`));
  const path = await downloaded(b, new RegExp(`^reverse_.*\\.${extension}$`));
  const bytes = readFileSync(path);
  rmSync(path);
  return { name: path.split("/").at(-1), bytes };
}

// Opens an SVG file alone, and returns what is in it.
async function drawingIn(b, bytes) {
  const path = join(b.directory, `${b.name}_saved.svg`);
  writeFileSync(path, bytes);
  const page = await b.browser.newPage();
  await page.goto(pathToFileURL(path).href);
  const drawing = await page.evaluate(() => {
    const read = (node, names) => Object.fromEntries(names.map((name) => [name, node.getAttribute(name)]));
    const all = (name, names) => [...document.querySelectorAll(name)].map((node) => ({ text: node.textContent, ...read(node, names) }));
    const within = ({ left, top, right, bottom }, outer) =>
      left >= outer.left - 1 && top >= outer.top - 1 && right <= outer.right + 1 && bottom <= outer.bottom + 1;
    const root = document.documentElement;
    return {
      root: root.localName,
      errors: document.querySelectorAll("parsererror").length,
      size: [root.width.baseVal.value, root.height.baseVal.value],
      rectangles: all("rect", ["x", "y", "width", "height", "fill"]),
      paths: all("path", ["d", "stroke", "fill"]),
      texts: all("text", ["fill"]),
      outside: [...document.querySelectorAll("text")]
        .filter((node) => !within(node.getBoundingClientRect(), root.getBoundingClientRect()))
        .map((node) => node.textContent),
    };
  });
  await page.screenshot({ path: join(b.directory, `${b.name}_saved_svg.png`) });
  await page.close();
  assert.deepEqual([drawing.root, drawing.errors, drawing.outside], ["svg", 0, []]);
  return drawing;
}

// Returns the pixels [r, g, b] of a PNG file at places in pixels of CSS.
async function pixelsOf(page, bytes, [width, height], places) {
  const { density, pixels } = await page.evaluate(
    async (base64, given, wanted) => {
      const data = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
      const image = await createImageBitmap(new Blob([data], { type: "image/png" }));
      const canvas = document.createElement("canvas");
      Object.assign(canvas, { width: image.width, height: image.height });
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0);
      const scale = image.width / given;
      const { data: all } = context.getImageData(0, 0, image.width, image.height);
      const at = ([x, y]) => [...all.subarray(4 * (Math.floor(y * scale) * image.width + Math.floor(x * scale))).slice(0, 3)];
      return { density: [scale, image.height], pixels: wanted.map(at) };
    },
    bytes.toString("base64"),
    width,
    places,
  );
  assert.deepEqual(density, [2, 2 * height]);
  return pixels;
}

const kNumbers = /\d+/g;
const rgb = (text) =>
  text.startsWith("#") ? [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)) : text.match(kNumbers).slice(0, 3).map(Number);

// Requires that all texts of a drawing can be read on its background, which covers it.
function requireReadable({ rectangles: [ground], texts, size }) {
  assert.deepEqual([ground.x, ground.y, ground.width, ground.height].map(Number), [0, 0, ...size]);
  for (const { text, fill } of texts) {
    const ratio = contrast(rgb(fill), rgb(ground.fill));
    assert.ok(ratio >= kReadable.text, `${text}: ${fill} on ${ground.fill}, ${ratio}`);
  }
}

/** Tests of files that are saved: test(name, run(b)) adds one. */
export function pictureTests(test, file) {
  for (const scheme of ["light", "dark"])
    test(`a map and curves are saved as they are shown, ${scheme}`, async (b) => {
      const page = await open(b, file, { scheme });
      await click(page, "#train");
      await textOf(page, "#status", /^step \d\d\d/);
      await click(page, "#train");
      const [, step] = (await textOf(page, "#foot", /at step \d{3};/)).match(/at step (\d+);/);

      const svg = await saved(b, page, "#heads", "svg");
      assert.equal(svg.name, `reverse_head_0_0_step_${step}.svg`);
      const map = await drawingIn(b, svg.bytes);
      requireReadable(map);
      const input = (await page.$eval("#input", (field) => field.value)).split(" ");
      const texts = map.texts.map(({ text }) => text);
      for (const text of [`head 0.0 step ${step}`, "← query", "key →", "0", "1"]) assert.ok(texts.includes(text), text);
      assert.deepEqual(texts.slice(1, 33), [...input, ...input]);
      // The thumbnail of the page has a square of the same color for each cell.
      const shown = await page.$eval(".tile canvas", (canvas) => {
        const size = canvas.width / 16;
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const at = (r, c) => [...data.slice(4 * (Math.floor((r + 0.5) * size) * canvas.width + Math.floor((c + 0.5) * size))).slice(0, 3)];
        return Array.from({ length: 256 }, (_, i) => at(Math.floor(i / 16), i % 16));
      });
      assert.ok(new Set(shown.map(String)).size > 20);
      const rectangles = map.rectangles.slice(1).map((r) => ({ ...r, x: +r.x, y: +r.y, width: +r.width, height: +r.height }));
      const cell = rectangles[0].height;
      const [left, top] = [rectangles[0].x, rectangles[0].y];
      const places = shown.map((_, i) => [left + ((i % 16) + 0.5) * cell, top + (Math.floor(i / 16) + 0.5) * cell]);
      const fillAt = ([x, y]) => rectangles.find((r) => r.x <= x && x < r.x + r.width && r.y <= y && y < r.y + r.height).fill;
      assert.deepEqual(
        places.map((place) => rgb(fillAt(place))),
        shown,
      );
      const png = await saved(b, page, "#heads", "png");
      assert.equal(png.name, `reverse_head_0_0_step_${step}.png`);
      assert.deepEqual(await pixelsOf(page, png.bytes, map.size, places), shown);

      const curve = await saved(b, page, "#results .chart", "svg");
      assert.equal(curve.name, `reverse_Loss_step_${step}.svg`);
      const chart = await drawingIn(b, curve.bytes);
      requireReadable(chart);
      const words = chart.texts.map(({ text }) => text);
      for (const text of [`Loss step ${step}`, "training", "validation", "lowest possible", "step"]) assert.ok(words.includes(text), text);
      const here = await page.$eval("#results .line.first", (line) => ({
        d: line.getAttribute("d"),
        color: getComputedStyle(line).stroke,
      }));
      const points = (d) => d.match(/[\d.]+/g).map(Number);
      const line = chart.paths.find(({ d }) => points(d).length === points(here.d).length && d.length > 100);
      assert.equal(line.stroke, here.color);
      const [dx, dy] = [0, 1].map((i) => points(line.d)[i] - points(here.d)[i]);
      points(here.d).forEach((x, i) => assert.ok(Math.abs(points(line.d)[i] - x - (i % 2 ? dy : dx)) < 1e-6));
      for (const { stroke, fill } of chart.paths.filter((path) => path.stroke === here.color))
        assert.ok(contrast(rgb(stroke), rgb(chart.rectangles[0].fill)) >= kReadable.large, `${stroke} ${fill}`);
      const picture = await saved(b, page, "#results .chart", "png");
      const [start] = [points(line.d)];
      const [ground, first] = await pixelsOf(page, picture.bytes, chart.size, [
        [1, 1],
        [start[0] + 0.3, start[1]],
      ]);
      assert.deepEqual(ground, rgb(chart.rectangles[0].fill));
      assert.notDeepEqual(first, ground);
      await closed(page);
    });

  test("a map of hostile tokens is saved as a valid file, while the model trains", async (b) => {
    const page = await open(b, file);
    const tokens = ["<b>&amp;", '"', "'", "]]>", "\u202eevil", "\uffff", "😀", "<!--"];
    await page.$eval(".own", (details) => (details.open = true));
    const inputOf = (i) => [0, 3, 6].map((by) => tokens[(i >> by) % 8]).join(" ");
    const lines = Array.from({ length: 200 }, (_, i) => `${inputOf(i)}\t${tokens[i % 8]}`);
    await put(page, "#own", lines.join("\n"));
    await click(page, "#use-own");
    await textOf(page, "#status", /^step 0 of 600/);
    await textOf(page, "#answer", /./);
    await put(page, "#input", `<b>&amp; ]]> "`);
    await textOf(page, "#answer", /^0<b>&amp;/);
    await click(page, "#train");
    await textOf(page, "#status", /^step \d\d/);
    const button = await page.$("#heads .save button");
    const { x, y } = await button.clickablePoint();
    await page.mouse.move(x, y);
    await page.mouse.down();
    const before = await textOf(page, "#status", /^step \d/);
    await page.waitForFunction((old) => document.querySelector("#status").textContent !== old, {}, before);
    await page.mouse.up();
    const path = await downloaded(b, /^file_.*\.svg$/);
    const bytes = readFileSync(path);
    rmSync(path);
    const { texts } = await drawingIn(b, bytes);
    assert.ok(
      texts.some(({ text }) => text === "<b>&amp;"),
      JSON.stringify(texts),
    );
    await closed(page);
  });
}
