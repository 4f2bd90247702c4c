// Parses YAML for the engine, which reads the tree with the reader of its configs.

import { LineCounter, isAlias, isMap, isScalar, isSeq, parseAllDocuments } from "yaml";

const MAX_DEPTH = 500;

class Problem extends Error {
  constructor(offset, message, isSyntax = false) {
    super(message);
    this.offset = offset;
    this.isSyntax = isSyntax;
  }
}

// Returns the JSON that src/addons/lab/yaml_parser.cpp reads: a tree of nodes, or the first problem.
export function parseYaml(text) {
  const lines = new LineCounter();
  const place = (offset) => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  try {
    return JSON.stringify(tree(text, lines, place));
  } catch (error) {
    const deep = error instanceof RangeError;
    if (!deep && !(error instanceof Problem)) throw error;
    const problem = deep ? new Problem(0, "nested too deeply", true) : error;
    return JSON.stringify({ problem: { ...place(problem.offset), message: problem.message, syntax: problem.isSyntax } });
  }
}

function tree(text, lines, place) {
  // Scalars stay text: the rules of the fields convert them.
  const options = { schema: "failsafe", uniqueKeys: false, lineCounter: lines, prettyErrors: false };
  const documents = parseAllDocuments(text, options);
  const first = documents[0];
  if (first?.errors.length > 0) {
    const { pos, message } = first.errors[0];
    throw new Problem(pos[0], message, true);
  }
  if (documents.length > 1) throw new Problem(documents[1].range[0], "second YAML document; a file must have one");
  return node(first?.contents ?? null, { line: 1, column: 1 }, 0, place);
}

// Returns the node of a value; `parent` is the place of its key or list, which an empty value takes.
function node(value, parent, depth, place) {
  if (depth > MAX_DEPTH) throw new Problem(value?.range[0] ?? 0, "nested too deeply", true);
  if (isAlias(value)) throw new Problem(value.range[0], "YAML aliases are not supported; write the value itself");
  const tag = value?.tag && value.tag !== "!" ? { tag: value.tag } : {};
  if (isScalar(value)) {
    const quoted = value.type !== "PLAIN";
    const written = String(value.value ?? value.source ?? "");
    if (!quoted && !value.tag && ["", "~", "null", "Null", "NULL"].includes(written)) return { kind: "empty", ...parent };
    return { kind: "text", ...place(value.range[0]), text: written, quoted, ...tag };
  }
  if (!isMap(value) && !isSeq(value)) return { kind: "empty", ...parent };
  const here = place(value.range[0]);
  if (isSeq(value)) return { kind: "list", ...here, ...tag, values: value.items.map((item) => node(item, here, depth + 1, place)) };
  const keys = [],
    values = [];
  for (const pair of value.items) {
    keys.push(node(pair.key, here, depth + 1, place));
    const { line, column } = keys.at(-1);
    values.push(node(pair.value, { line, column }, depth + 1, place));
  }
  return { kind: "map", ...here, ...tag, keys, values };
}
