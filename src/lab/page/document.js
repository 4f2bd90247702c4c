// The text of the config as a YAML document: changes a value, and keeps comments and layout.
import { parseDocument } from "yaml";

const kFormat = { lineWidth: 110, flowCollectionPadding: false };

/** Returns the text with another value of a key such as "model.heads", or null if the text is not valid YAML. */
export function changed(text, key, value) {
  const document = parseDocument(text);
  if (document.errors.length) return null;
  document.setIn(key.split("."), value);
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
