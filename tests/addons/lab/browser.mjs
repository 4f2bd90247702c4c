// Opens the lab in Chromium and in Firefox for browser_test.mjs, and does what a person does there.
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const kMinute = 60_000;

/** Starts a browser: "chromium" or "firefox". Downloads go to a folder of `directory`, screenshots to `directory`. */
export async function launch(name, executablePath, directory, modules) {
  const puppeteer = createRequire(join(modules, "package.json"))("puppeteer-core");
  const downloads = join(directory, `downloads_${name}`);
  rmSync(downloads, { recursive: true, force: true });
  mkdirSync(downloads, { recursive: true });
  const firefox = {
    browser: "firefox",
    extraPrefsFirefox: {
      "browser.download.folderList": 2,
      "browser.download.dir": downloads,
      "browser.download.useDownloadDir": true,
      "browser.download.alwaysOpenPanel": false,
    },
  };
  const chromium = { args: ["--no-sandbox", "--disable-gpu"] };
  const browser = await puppeteer.launch({
    executablePath,
    headless: true,
    protocolTimeout: 10 * kMinute,
    ...(name === "firefox" ? firefox : chromium),
  });
  return { browser, name, directory, downloads };
}

/** Opens the lab, and collects its errors, warnings, dialogs and requests in page.complaints. */
export async function open(
  { browser, name, downloads },
  file,
  { fragment = "", width = 1280, height = 900, scheme = "light", wait = "" } = {},
) {
  const page = await browser.newPage();
  page.complaints = [];
  page.on("console", (message) => ["error", "warn", "warning"].includes(message.type()) && page.complaints.push(message.text()));
  page.on("pageerror", (error) => page.complaints.push(String(error)));
  page.on("dialog", (dialog) => {
    page.complaints.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  const url = pathToFileURL(file).href;
  const isOwn = (address) => /^(blob|data):/.test(address) || address.split("#")[0] === url;
  page.on("request", (request) => isOwn(request.url()) || page.complaints.push(`request: ${request.url()}`));
  if (name === "chromium") {
    const session = await page.createCDPSession();
    await session.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: downloads });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  }
  await page.setViewport({ width, height });
  const start = Date.now();
  await page.goto(url + fragment);
  const isThere = (selector) =>
    document.querySelector(selector || "#answer .chip") || (!selector && document.querySelector("#message")?.textContent);
  await page.waitForFunction(isThere, {}, wait);
  page.opened = Date.now() - start;
  if (scheme === "dark" && name !== "chromium") await page.click(".theme");
  return page;
}

/** Requires that the page complained of nothing and asked for nothing, and closes it. */
export async function closed(page) {
  assert.deepEqual(page.complaints, []);
  await page.close();
}

export const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

export const text = (page, selector) => page.$eval(selector, (node) => node.textContent);

/** Waits until the text of an element matches, and returns it. */
export async function textOf(page, selector, pattern, timeout = kMinute) {
  const wait = (s, source) => new RegExp(source, "s").test(document.querySelector(s)?.textContent ?? "");
  await page.waitForFunction(wait, { timeout, polling: 100 }, selector, pattern.source).catch(async () => {
    const found = await text(page, selector).catch(() => "nothing");
    const message = await text(page, "#message").catch(() => "");
    throw new Error(`${selector} has "${found}", not ${pattern}; message: "${message}"`);
  });
  return text(page, selector);
}

/** Clicks an element without regard to what covers it. */
export const click = (page, selector) => page.$eval(selector, (node) => node.click());

/** Gives a control a value, as a person who leaves it afterwards. */
export const put = (page, selector, value) =>
  page.$eval(
    selector,
    (node, given) => {
      node.value = given;
      node.dispatchEvent(new Event("input", { bubbles: true }));
      node.dispatchEvent(new Event("change", { bubbles: true }));
    },
    value,
  );

/** Drops files, {name: bytes}, on the page, as the browser's events have them. */
export const drop = (page, files) =>
  page.evaluate(
    (given) => {
      const dataTransfer = new DataTransfer();
      for (const [name, base64] of given) dataTransfer.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], name));
      const event = new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true });
      document.body.dispatchEvent(event);
      return event.defaultPrevented;
    },
    Object.entries(files).map(([name, bytes]) => [name, Buffer.from(bytes).toString("base64")]),
  );

/** Moves the cursor of the large map to a cell with the keyboard. */
export async function cell(page, row, column) {
  await page.focus("#map");
  for (const key of ["Escape", "ArrowDown", ...Array(row).fill("ArrowDown"), ...Array(column).fill("ArrowRight")])
    await page.keyboard.press(key);
  await textOf(page, "#cell", new RegExp(`^query ${row} .* → key ${column} `));
}

/** Replaces the config by a text of the YAML view. */
export async function yaml(page, change) {
  await click(page, "#tab-YAML");
  const before = await page.$eval("#yaml", (node) => node.value);
  await put(page, "#yaml", change(before));
  await page.waitForFunction(() => document.querySelector("#lab").getAttribute("aria-busy") === "false");
}

/** Trains until the status matches, and pauses. */
export async function train(page, pattern, timeout = 5 * kMinute) {
  await click(page, "#train");
  await textOf(page, pattern.source.startsWith("^Finished") ? "#ending" : "#status", pattern, timeout);
  if ((await text(page, "#train")) === "Pause") await click(page, "#train");
  await page.waitForFunction(() => document.querySelector("#train").textContent !== "Pause");
}

/** Waits for a downloaded file and returns its path. */
export async function downloaded({ downloads }, pattern) {
  for (let i = 0; i < 300; ++i) {
    const found = readdirSync(downloads).find((name) => pattern.test(name));
    if (found && !readdirSync(downloads).some((name) => /\.(part|crdownload)$/.test(name))) return join(downloads, found);
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error(`no download ${pattern} in ${readdirSync(downloads)}`);
}
