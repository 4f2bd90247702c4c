// A link that holds the config and pasted data: the fragment is #lab=BASE64URL, raw deflate of JSON {yaml, own}.
import { state, update } from "lab:report";
import { say, setText } from "./session.js";

const kLimit = 1 << 20; // bytes of what a link may unfold to
const kLongest = 200_000; // characters of a fragment
const kName = /^[\w.-]{1,64}\.(tsv|jsonl|txt)$/;

async function through(bytes, stream, limit) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts = [];
  let size = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    size += part.value.length;
    if (size > limit) {
      await reader.cancel();
      throw new Error(`it unfolds to more than ${limit} bytes`);
    }
    parts.push(part.value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

const encode = (bytes) =>
  btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join(""))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
const decode = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));

/** Returns the fragment of a config with its own files. */
async function fragmentOf(yaml, own) {
  const text = new TextEncoder().encode(JSON.stringify({ yaml, own }));
  return `#lab=${encode(await through(text, new CompressionStream("deflate-raw"), kLimit))}`;
}

/** Returns {yaml, own} of a fragment; null without one. Throws Error for one that is not valid. */
async function read(fragment) {
  if (!fragment.startsWith("#lab=")) return null;
  if (fragment.length > kLongest) throw new Error(`it has more than ${kLongest} characters`);
  const bytes = await through(decode(fragment.slice(5)), new DecompressionStream("deflate-raw"), kLimit);
  const { yaml, own = {} } = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  const files = Object.entries(own);
  if (typeof yaml !== "string" || files.length > 4) throw new Error("it holds no config");
  for (const [name, text] of files) if (!kName.test(name) || typeof text !== "string") throw new Error("it holds a file that is not data");
  return { yaml, own: Object.fromEntries(files) };
}

/** Opens what the address holds; without a config there, opens the text, or leaves things as they are without one. */
export async function openAddress(text) {
  let found = null;
  let problem = "";
  try {
    found = await read(location.hash);
  } catch (error) {
    problem = `The link cannot be opened: ${error.message}. Copy it again, all of it.`;
  }
  if (found) update({ own: found.own });
  if (found || text) await setText(found?.yaml ?? text, { keepRun: false });
  if (problem) say(problem);
}

/** Puts the config into the address and into the clipboard. */
export async function share() {
  try {
    const fragment = await fragmentOf(state.text, state.own);
    if (fragment.length > kLongest) throw new Error("the data are too large for a link; save the run instead");
    history.replaceState(null, "", fragment);
    const copied = await navigator.clipboard?.writeText(location.href).then(
      () => true,
      () => false,
    );
    return copied
      ? "The link is copied: it opens this page with this config, seed and data."
      : "The address above now holds config, seed and data.";
  } catch (error) {
    return `No link: ${error.message}.`;
  }
}
