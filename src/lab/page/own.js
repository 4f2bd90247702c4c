// The user's own data: pairs or a text that was pasted, as a file of the task `file` and a config for it.
import { element, state } from "lab:report";
import configs from "lab:configs";
import { changed } from "./document.js";
import { kShortest, outputOf, pairLines, pieces } from "./pairs.js";
import { say, setOwn, setText } from "./session.js";

const kLimit = 2_000_000; // characters

/** Takes over data, "pairs" or a text by "letters" or "words": makes its file and a config, and opens it. */
export async function useOwn(text, kind) {
  if (text.length > kLimit) {
    say(`The data have ${text.length.toLocaleString("en")} characters; at most ${kLimit.toLocaleString("en")} are read. Paste a part.`);
    return;
  }
  const isPairs = kind === "pairs";
  const { lines, numbers } = isPairs ? pairLines(text) : { lines: pieces(text, kind) };
  if (!lines.length) {
    say(isPairs ? "There is no pair: write an input, a tab or ->, and its target on a line." : `A text needs ${kShortest} tokens or more.`);
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
  setOwn({ [name]: `${lines.join("\n")}\n` }, isPairs ? { name, numbers } : null);
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
