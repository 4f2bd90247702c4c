// Walks through the lessons of the lab, each of five steps.
import assert from "node:assert/strict";

import { cell, click, put, text, textOf } from "./browser.mjs";

const kLong = 600_000;

const trained = async (page) => {
  await click(page, "#train");
  await textOf(page, "#lesson-seen", /\d/, kLong);
  if ((await text(page, "#train")) === "Pause") await click(page, "#train");
  await page.waitForFunction(() => document.querySelector("#train").textContent !== "Pause");
};
const tile = (page, name) => click(page, `.tile[data-head="${name}"]`);

// Chooses heads until one is what the step looks for.
const search = (names) => async (page) => {
  for (const name of names) {
    await tile(page, name);
    await new Promise((done) => setTimeout(done, 400));
    if (await text(page, "#lesson-seen")) return;
  }
};
const ablate = (page) => click(page, "#ablate");

// The action of each step, and what the page must say then.
const kActions = {
  reverse: [
    [(page) => cell(page, 0, 15), /Output 0 is input 15\. .* uniform attention would give 6\.25 %/],
    [trained, /^9\d\.\d\d %|^100/],
    [(page) => put(page, "#past", "2"), /At step \d+ the mirrored key had/],
    [
      async (page) => {
        await click(page, "#live");
        await ablate(page);
      },
      /accuracy falls from (9\d|100)\.\d\d % to 1\d\.\d\d %/,
    ],
    [
      async (page) => {
        await ablate(page);
        const input = (await page.$eval("#input", (field) => field.value)).split(" ");
        await put(page, "#row-query", "0");
        await page.waitForSelector(".bars-of-row input");
        await page.$$eval(
          ".bars-of-row input",
          (sliders, index) => {
            sliders[index].value = 1;
            sliders[index].dispatchEvent(new Event("input", { bubbles: true }));
          },
          input.findIndex((token) => token !== input[15]),
        );
      },
      /Output 0 was \d and is now \d/,
    ],
  ],
  sort: [
    [(page) => cell(page, 1, 4), /Query 1 may not attend to key \d/],
    [trained, /right at step/],
    [(page) => put(page, "#input", "2 1 0 2 1 0"), /After 2 1 0 2 1 0 it writes 0/],
    [ablate, /Without head 0\.0, accuracy goes/],
    [
      async (page) => {
        await tile(page, "1.1");
        await ablate(page);
      },
      /Without heads 0\.0 and 1\.1/,
    ],
  ],
  induction: [
    [(page) => tile(page, "1.0"), /untrained/],
    [trained, /^(4[7-9]|5\d)\.\d\d % right at step/],
    [search(["0.0", "0.1"]), /puts [4-9]\d\.\d\d % \(chance 1\d\.\d\d %\) of its attention on the previous token, and it was half/],
    [
      search(["1.0", "1.1"]),
      /puts [7-9]\d\.\d\d % \(chance \d\.\d\d %\) of its attention on the token that followed last time, and it was half/,
    ],
    [
      async (page) => {
        await tile(page, "0.0");
        await ablate(page);
      },
      /Without head 0\.0, accuracy goes from 4\d\.\d\d % to [12]?\d\.\d\d %\. On this input, head 1.\d puts [0-5]?\d\.\d\d % .* before it was [6-9]\d\./,
    ],
  ],
  translation: [
    [(page) => tile(page, "cross.0.0"), /no word is aligned/],
    [trained, /of the words are right/],
    [search(["cross.0.0", "cross.0.1"]), /on the word that is translated/],
    [(page) => click(page, "#another"), /became/],
    [ablate, /Without head cross\.0\.\d/],
  ],
};

/** Walks through a lesson: in each step, the action is waited for, then its sentence must be there. */
export async function walk(page, lesson) {
  await page.select("#lesson-choice", lesson);
  await textOf(page, "#lesson-title", /step 1 of 5/);
  for (const [at, [act, seen]] of kActions[lesson].entries()) {
    assert.equal(await text(page, "#lesson-seen"), "", "the step waits for its action");
    assert.ok(await page.$eval("#lesson-next", (button) => button.disabled));
    await act(page);
    const sentence = await textOf(page, "#lesson-seen", seen);
    assert.ok(!/NaN|undefined|–/.test(sentence), sentence);
    console.log(`  ${lesson} ${at + 1}: ${sentence}`);
    await page.waitForFunction(() => !document.querySelector("#lesson-next").disabled);
    await click(page, "#lesson-next");
  }
  assert.equal(await page.$eval("#lesson", (node) => node.hidden), true);
}
