// The text of the config as a YAML document: reads and changes a value, and keeps comments and layout.
import { parseDocument } from "yaml";
import { state } from "lab:report";

const kFormat = { lineWidth: 110, flowCollectionPadding: false };

/** Returns the value of a key such as "model.heads" in the text, or undefined. */
export function written(key) {
  const document = parseDocument(state.text);
  return document.errors.length ? undefined : document.getIn(key.split("."));
}

/** Returns the text with another value of a key, or null if the text is not valid YAML. */
export function changed(text, key, value) {
  const document = parseDocument(text);
  if (document.errors.length) return null;
  document.setIn(key.split("."), value);
  return document.toString(kFormat);
}

/** Returns the text without a key, or null if the text is not valid YAML. */
export function removed(text, key) {
  const document = parseDocument(text);
  if (document.errors.length) return null;
  document.deleteIn(key.split("."));
  return document.toString(kFormat);
}

/** Returns the first sentences of a config: its comment at the top, up to a blank line. */
export function summaryOf(text) {
  const lines = [];
  for (const line of text.split("\n")) {
    if (!/^# ?\S/.test(line)) break;
    lines.push(line.replace(/^# ?/, ""));
  }
  return lines.join(" ");
}
