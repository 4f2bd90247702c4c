// The user's own data, pairs or a text, as a file of the task `file` and a config for it.
import { element, state } from "lab:report";
import configs from "lab:configs";
import { changed } from "./document.js";
import { ask } from "./engine.js";
import { keysOf, kShortest, pieceKeys, pieces } from "./pairs.js";
import { say, setOwn, setText } from "./session.js";

const kLimit = 2_000_000; // characters

// Returns what the output must be for data, "position", "sequence" or "next", as the engine finds; null where it refuses them.
async function outputOf(keys, files) {
  const overrides = Object.entries(keys).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  try {
    return (await ask("task", { name: "file", overrides, files, examples: 0 })).per;
  } catch (error) {
    if (error.kind === "stopped") throw error;
    return null;
  }
}

/** Takes over data, "pairs" or a text by "letters" or "words", as a file and a config for it, and opens it. */
export async function useOwn(text, kind, file = "pasted.tsv") {
  if (text.length > kLimit) {
    say(`The data have ${text.length.toLocaleString("en")} characters; at most ${kLimit.toLocaleString("en")} are read. Paste a part.`);
    return;
  }
  const isPairs = kind === "pairs";
  const name = isPairs ? file : "pasted.jsonl";
  const lines = isPairs ? [] : pieces(text, kind);
  if (!isPairs && !lines.length) return say(`A text needs ${kShortest} tokens or more.`);
  const own = { [name]: isPairs ? text : `${lines.join("\n")}\n` };
  const keys = isPairs ? keysOf(name, text) : pieceKeys(name, kind);
  try {
    // What the engine refuses is opened, too: its problems are listed beside the form, which can change how the file is read.
    const per = isPairs ? await outputOf(keys, own) : "next";
    if (per) Object.assign(keys, { "model.output.per": per, "model.attention.mask": per === "next" ? "causal" : "none" });
  } catch {
    return;
  }
  const comment = isPairs ? `# Own data: the pairs of ${name}.` : `# Own data: ${lines.length} pieces of a text, each of which goes on.`;
  const plain = configs["own_data.yaml"].replace(/^#.*\n/gm, "");
  setOwn(own);
  await setText(`${comment}\n${Object.entries(keys).reduce((config, [key, value]) => changed(config, key, value), plain)}`, {
    keepRun: false,
  });
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
    choice("pairs", "pairs: an input, a tab or ->, its target; spaces between tokens"),
    choice("letters", "a text, letter by letter"),
    choice("words", "a text, word by word"),
  );
  const use = element("button", { id: "use-own" }, "Use this data");
  use.addEventListener("click", () => useOwn(area.value, kinds.querySelector(":checked").value));
  const details = element("details", { class: "own" }, element("summary", {}, "Your own data"), area, kinds, use);
  if (Object.keys(state.own).length) details.open = true;
  return details;
}
