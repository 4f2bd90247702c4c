// Links that hold a config and data: the fragment is #lab=BASE64URL, raw deflate of JSON {yaml, own}.
import { deflated, inflated } from "./deflate.js";
import { PageError } from "./errors.js";
import { isData } from "./pairs.js";

const kLimit = 1 << 20; // bytes of the JSON
const kLongest = 200_000; // characters of a fragment
const kMost = 4; // files
const kName = /^[\w. ()-]{1,64}$/;
const kStart = "#lab=";

const isNamed = (name) => kName.test(name) && isData(name);

const encode = (bytes) =>
  btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join(""))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");

// Returns null for a text that is not in base64url.
function decode(text) {
  try {
    return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  } catch {
    return null;
  }
}

/** Returns the fragment of a config with its files, {name: text}. Throws PageError where read() would refuse it. */
export async function fragmentOf(yaml, own) {
  const names = Object.keys(own);
  const other = names.find((name) => !isNamed(name));
  if (other) throw new PageError(`${other} cannot be in a link, which holds data files with plain names; save the run instead`);
  if (names.length > kMost) throw new PageError(`a link holds ${kMost} files, not ${names.length}; save the run instead`);
  const bytes = new TextEncoder().encode(JSON.stringify({ yaml, own }));
  const fragment = bytes.length > kLimit ? null : `${kStart}${encode(await deflated(bytes))}`;
  if (fragment === null || fragment.length > kLongest) throw new PageError("the data are too large for a link; save the run instead");
  return fragment;
}

function parsed(bytes) {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return null;
  }
}

const isMap = (x) => typeof x === "object" && x !== null && !Array.isArray(x);

/** Returns {yaml, own} of a fragment; null without one. Throws PageError for one that is not valid. */
export async function read(fragment) {
  if (!fragment.startsWith(kStart)) return null;
  if (fragment.length > kLongest) throw new PageError(`it has more than ${kLongest} characters`);
  const packed = decode(fragment.slice(kStart.length));
  const bytes = packed && (await inflated(packed, kLimit));
  if (!bytes) throw new PageError(`it is cut off or changed, or unfolds to more than ${kLimit} bytes`);
  const held = parsed(bytes);
  if (!isMap(held) || typeof held.yaml !== "string") throw new PageError("it holds no config");
  const own = held.own ?? {};
  const isData = ([name, text]) => isNamed(name) && typeof text === "string";
  if (!isMap(own) || Object.keys(own).length > kMost || !Object.entries(own).every(isData))
    throw new PageError("it holds a file that is not data");
  return { yaml: held.yaml, own };
}
