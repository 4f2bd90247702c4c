// Data of the user: pairs of an input and a target, which the engine reads as a file, or a text, which is cut in pieces.

const kWindow = 16; // tokens of a piece of text: the first half is the input, the second the target
const kArrow = /->|→/;

/** Tokens that a text must have. */
export const kShortest = kWindow;

/** Returns whether a name is that of a data file. */
export const isData = (name) => /\.(tsv|csv|jsonl|conllu|conll|bio|iob|txt)$/i.test(name);

// Returns the first line of a text that is not blank.
const firstLine = (text) => /^.*\S.*$/m.exec(text)?.[0] ?? "";

/** Returns whether a .txt file is pairs: its first line has a tab or an arrow. */
export const hasPairs = (text) => firstLine(text).includes("\t") || kArrow.test(firstLine(text));

/** Returns the keys with which the engine reads pairs: a line without a tab is cut at the arrow that the first one has. */
export function keysOf(name, text) {
  const first = firstLine(text);
  const arrow = /\.(tsv|txt)$/i.test(name) && !first.includes("\t") ? kArrow.exec(first)?.[0] : undefined;
  return { "task.file": name, ...(arrow ? { "task.separator": arrow } : {}) };
}

/** Returns JSON Lines of pieces of a text, by "letters" or "words": how each goes on. */
export function pieces(text, by) {
  const clean = text.trim().replace(/\s+/g, " ");
  const between = by === "words" ? " " : "";
  const tokens = by === "words" ? clean.split(" ") : [...clean];
  const half = kWindow / 2;
  const part = (from) => tokens.slice(from, from + half).join(between);
  const starts = [];
  for (let at = 0; at + kWindow <= tokens.length; at += Math.max(1, Math.ceil(tokens.length / 20000))) starts.push(at);
  return starts.map((at) => JSON.stringify({ input: part(at), target: part(at + half) }));
}

/** Returns the keys with which the engine reads such pieces. */
export const pieceKeys = (name, by) => ({
  "task.file": name,
  ...(by === "letters" ? { "task.input_tokens": "characters", "task.target_tokens": "characters" } : {}),
});
