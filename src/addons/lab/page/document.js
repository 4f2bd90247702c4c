// The text of the config as a YAML document: changes a value, and keeps comments and layout.
import { isMap, isScalar, parseDocument } from "yaml";
import { PageError } from "./errors.js";

const kFormat = { lineWidth: 110, flowCollectionPadding: false };

/** Keys whose values name files. */
export const kFileKeys = ["base", "task.file", "task.validation_file", "task.test_file", "task.vocabulary_file"];

// Returns a number as the program writes it: 1.0e-07, since readers of YAML 1.1 take 1e-7 for a text.
function numberText(value) {
  const [digits, power] = Number(value).toExponential().split("e");
  if (typeof value === "bigint" || (Number(power) >= -4 && Number(power) < 16)) return String(value);
  return `${digits.includes(".") ? digits : `${digits}.0`}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}

// Writes numbers that do not change as they were written.
function withNumbers(tag) {
  if (!/:(int|float)$/.test(tag.tag)) return tag;
  const stringify = (node) => {
    if (!Number.isFinite(Number(node.value))) return tag.stringify(node);
    return Number(node.source) === node.value ? node.source : numberText(node.value);
  };
  return { ...tag, stringify };
}

/** Returns where a text is not valid YAML, as a line of words; "" where it is valid. */
export function invalidAt(text) {
  const { errors } = parseDocument(text, { prettyErrors: false });
  return errors.length ? `the YAML is not valid at line ${text.slice(0, errors[0].pos[0]).split("\n").length}` : "";
}

/** Returns the text with another value of a key such as "model.heads", or without it if that is undefined. Throws PageError where the text has no place for it. */
export function changed(text, key, value) {
  const invalid = invalidAt(text);
  if (invalid) throw new PageError(`${invalid}; correct it there, then change ${key}`);
  const document = parseDocument(text, { compat: "yaml-1.1", customTags: (tags) => tags.map(withNumbers) });
  const path = key.split(".");
  for (let depth = 0; depth < path.length; ++depth) {
    const above = path.slice(0, depth);
    const node = depth === 0 ? document.contents : document.getIn(above, true);
    if (!node || isMap(node)) continue;
    const what = depth === 0 ? "the config" : above.join(".");
    if (!isScalar(node) || node.value !== null)
      throw new PageError(`${what} is no map of keys; correct it in the YAML, then change ${key}`);
    document.setIn(above, document.createNode({}));
  }
  if (value === undefined) document.deleteIn(path);
  else document.setIn(path, value);
  return document.toString(kFormat);
}

/** Returns the task that a config names; undefined where it names none. */
export function taskOf(text) {
  const document = parseDocument(text);
  return isMap(document.contents) ? document.getIn(["task", "name"]) : undefined;
}

/** Returns the names of the files that a config names, without the folder of the engine. */
export function namedFiles(text) {
  const document = parseDocument(text);
  if (document.errors.length || !isMap(document.contents)) return [];
  const names = kFileKeys.map((key) => document.getIn(key.split(".")));
  return names.filter((name) => typeof name === "string").map((name) => name.replace(/^(\/lab\/|\.\/)/, ""));
}

/** Returns those of the files, {name: text}, that a config names, and those that its base names. */
export function filesOf(text, files) {
  const found = {};
  const add = (from) => {
    for (const name of namedFiles(from))
      if (Object.hasOwn(files, name) && !Object.hasOwn(found, name)) {
        found[name] = files[name];
        if (/\.ya?ml$/.test(name)) add(files[name]);
      }
  };
  add(text);
  return found;
}

const kLongest = 300; // characters of a comment that is quoted

/** Returns the first sentences of a config: its comment at the top, up to a blank line. Those that are not the page's own are quoted. */
export function summaryOf(text, isOwn) {
  const lines = [];
  for (const line of text.split("\n")) {
    if (!/^# ?\S/.test(line)) break;
    lines.push(line.replace(/^# ?/, "").trimEnd());
  }
  const summary = lines.join(" ");
  if (isOwn || !summary) return summary;
  return `The config begins with the comment: “${summary.length > kLongest ? `${summary.slice(0, kLongest)}…` : summary}”`;
}
