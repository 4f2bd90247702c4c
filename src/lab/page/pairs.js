// Data that was pasted: pairs of an input and a target, or a text.

const kWindow = 16; // tokens of a piece of text: the first half is the input, the second the target
const kArrow = /\s+(?:->|→)\s+/;

/** Tokens that a text must have. */
export const kShortest = kWindow;

/** Returns whether a text is pairs: its first line that is not empty has a tab or an arrow. */
export const hasPairs = (text) => /\t|\s(->|→)\s/.test(text.trimStart().split("\n", 1)[0]);

/**
 * Returns the lines of pairs and the number of each in the text, which blank lines do not have here. Where a line has no tab,
 * its first arrow between spaces becomes one.
 */
export function pairLines(text) {
  const all = text.replace(/^\ufeff/, "").split(/\r?\n/);
  const numbers = all.map((_, i) => i + 1).filter((number) => /[^ \t]/.test(all[number - 1]));
  const paired = (line) => (line.includes("\t") ? line : line.replace(kArrow, "\t"));
  return { lines: numbers.map((number) => paired(all[number - 1])), numbers };
}

/** Returns a message about lines of a file with their numbers in the text that was pasted. */
export function located(message, { name, numbers }) {
  return message.replace(new RegExp(`(?<![\\w.-])${name.replaceAll(".", "\\.")}:(\\d+)`, "g"), (all, n) =>
    numbers[n - 1] === undefined ? all : `${name}:${numbers[n - 1]}`,
  );
}

/** Returns what the output must be for pairs: one label, one for each position, or a sequence of any length. */
export function outputOf(lines) {
  const sizes = lines.map((line) => line.split("\t").map((side) => side.split(" ").filter(Boolean).length));
  if (sizes.every(([, target]) => target === 1)) return "sequence";
  return sizes.every(([input, target]) => input === target) ? "position" : "next";
}

/** Returns JSON Lines of pieces of a text: how each goes on. */
export function pieces(text, by) {
  const clean = text.trim().replace(/\s+/g, " ");
  const tokens = by === "words" ? clean.split(" ") : [...clean.replaceAll(" ", "␣")];
  const half = kWindow / 2;
  const starts = [];
  for (let at = 0; at + kWindow <= tokens.length; at += Math.max(1, Math.ceil(tokens.length / 20000))) starts.push(at);
  return starts.map((at) => JSON.stringify({ input: tokens.slice(at, at + half), target: tokens.slice(at + half, at + kWindow) }));
}
