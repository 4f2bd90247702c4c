// Pages escape the same characters as the program, of all that there are. Usage: node characters_test.mjs DIRECTORY
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const read = (name) => readFileSync(`${process.argv[2]}/${name}`, "utf8");
const script = read("small.html").split("<script>")[1].split("const report = ")[0];
const harmless = new Function(`${script}; return harmless;`)();

const lines = [];
for (let point = 0; point <= 0x10ffff; ++point) {
  if (point >= 0xd800 && point <= 0xdfff) continue;
  const c = String.fromCodePoint(point);
  lines.push(`${c}\u200d\ufe0f\ufe0e\n\u00e9${c}\ufe0e\n`);
}
const expected = read("characters.txt");
assert.ok(expected.length > 1e7, "characters.txt has all characters");
assert.ok(harmless(lines.join("")) === expected, "the page and the program escape different characters");
console.log("characters: ok");
