// The user's own data: pairs or a text that was pasted, as a file of the task `file` and a config for it.
import { element, state, update } from "lab:report";
import configs from "lab:configs";
import { changed } from "./document.js";
import { say, setText } from "./session.js";

const kLimit = 2_000_000; // characters
const kWindow = 16; // tokens of a piece of text: the first half is the input, the second the target
const kArrow = /\s+(?:->|→)\s+/;

/** Returns whether a text is pairs: its first line that is not empty has a tab or an arrow. */
export const hasPairs = (text) => /\t|\s(->|→)\s/.test(text.trimStart().split("\n", 1)[0]);

/** Returns the lines of pairs; where a line has no tab, its first arrow between spaces becomes one. */
function pairLines(text) {
  const lines = text.split(/\r?\n/).filter((line) => /[^ \t]/.test(line));
  return lines.map((line) => (line.includes("\t") ? line : line.replace(kArrow, "\t")));
}

/** Returns what the output must be for pairs: one label, one for each position, or a sequence of any length. */
function outputOf(lines) {
  const sizes = lines.map((line) => line.split("\t").map((side) => side.split(" ").filter(Boolean).length));
  if (sizes.every(([, target]) => target === 1)) return "sequence";
  return sizes.every(([input, target]) => input === target) ? "position" : "next";
}

/** Returns JSON Lines of pieces of a text: how each goes on. */
function pieces(text, by) {
  const clean = text.trim().replace(/\s+/g, " ");
  const tokens = by === "words" ? clean.split(" ") : [...clean.replaceAll(" ", "␣")];
  const half = kWindow / 2;
  const starts = [];
  for (let at = 0; at + kWindow <= tokens.length; at += Math.max(1, Math.ceil(tokens.length / 20000))) starts.push(at);
  return starts.map((at) => JSON.stringify({ input: tokens.slice(at, at + half), target: tokens.slice(at + half, at + kWindow) }));
}

/** Takes over data, "pairs" or a text by "letters" or "words": makes its file and a config, and opens it. */
export async function useOwn(text, kind) {
  if (text.length > kLimit) {
    say(`The data have ${text.length.toLocaleString("en")} characters; at most ${kLimit.toLocaleString("en")} are read. Paste a part.`);
    return;
  }
  const isPairs = kind === "pairs";
  const lines = isPairs ? pairLines(text) : pieces(text, kind);
  if (!lines.length) {
    say(isPairs ? "There is no pair: write an input, a tab or ->, and its target on a line." : `A text needs ${kWindow} tokens or more.`);
    return;
  }
  const name = isPairs ? "pasted.tsv" : "pasted.jsonl";
  const per = isPairs ? outputOf(lines) : "next";
  let config = configs["own_data.yaml"].replace(/^#.*\n/gm, "");
  const set = (key, value) => {
    config = changed(config, key, value);
  };
  set("task.file", name);
  set("model.output.per", per);
  set("model.attention.mask", per === "next" ? "causal" : "none");
  config = `# Pasted data: ${lines.length} ${isPairs ? "pairs" : "pieces of a text, each of which goes on"}.\n${config}`;
  update({ own: { [name]: `${lines.join("\n")}\n` } });
  await setText(config, { keepRun: false });
}

const kPlaceholder = "f o t a b -> s\nb a n y -> ies\n…";

/** Returns the fold-out for one's own data. */
export function ownData() {
  const area = element("textarea", { id: "own", rows: 6, spellcheck: "false", placeholder: kPlaceholder, "aria-label": "Own data" });
  const choice = (value, text) =>
    element("label", {}, element("input", { type: "radio", name: "kind", value, checked: value === "pairs" }), ` ${text}`);
  const kinds = element(
    "fieldset",
    { class: "kinds" },
    element("legend", {}, "These are"),
    choice("pairs", "pairs: input → target, spaces between tokens"),
    choice("letters", "a text, letter by letter"),
    choice("words", "a text, word by word"),
  );
  const use = element("button", { id: "use-own" }, "Use this data");
  use.addEventListener("click", () => useOwn(area.value, kinds.querySelector(":checked").value));
  const details = element("details", { class: "own" }, element("summary", {}, "Your own data"), area, kinds, use);
  if (Object.keys(state.own).length) details.open = true;
  return details;
}
