// Reads zip archives. Every limit counts bytes and files as they are when unpacked, and is checked before they are.
import { inflated } from "./deflate.js";
import { PageError } from "./errors.js";

export const kLimits = { bytes: 256 << 20, files: 2000, folders: 16, name: 255 };

const mebibytes = (bytes) => `${Math.ceil(bytes / (1 << 20)).toLocaleString("en")} MiB`;
const clipped = (name) => (name.length > 60 ? `${name.slice(0, 60)}…` : name);

/** Throws PageError unless files, [{path, size}], are within the limits. */
export function requireModest(files) {
  const { bytes, folders, name } = kLimits;
  if (files.length > kLimits.files) throw new PageError(`there are more than ${kLimits.files} files`);
  const size = files.reduce((sum, file) => sum + file.size, 0);
  if (size > bytes) throw new PageError(`the files have ${mebibytes(size)}, of which at most ${mebibytes(bytes)} are opened`);
  for (const { path } of files) {
    const parts = path.split("/");
    if (parts.length - 1 > folders)
      throw new PageError(`${clipped(path)} is in ${parts.length - 1} folders, one in the other; there may be ${folders}`);
    if (parts.some((part) => part.length > name)) throw new PageError(`${clipped(path)}: a name may have ${name} characters`);
    if (parts.includes("..") || path.startsWith("/")) throw new PageError(`${clipped(path)} leads out of its folder`);
  }
}

const kTable = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; ++bit) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});

/** Returns the CRC-32 of bytes. */
export function crc32(bytes) {
  let crc = -1;
  for (const byte of bytes) crc = kTable[(crc ^ byte) & 255] ^ (crc >>> 8);
  return ~crc >>> 0;
}

// Returns the number of entries of the directory of an archive, and where it begins.
function directoryOf(view) {
  const kEnd = 22; // bytes of the record at the end, before its comment
  for (let at = view.byteLength - kEnd; at >= Math.max(0, view.byteLength - kEnd - 0xffff); --at)
    if (view.getUint32(at, true) === 0x06054b50) return { count: view.getUint16(at + 10, true), at: view.getUint32(at + 16, true) };
  throw new PageError("this is not a whole zip archive");
}

// Returns the entries of an archive, [{path, size, stored, method, crc, at}], as its directory has them.
function entriesOf(bytes, view) {
  const text = new TextDecoder();
  let { count, at } = directoryOf(view);
  const entries = [];
  for (; count > 0; --count) {
    if (view.getUint32(at, true) !== 0x02014b50) throw new RangeError("no entry");
    const [name, extra, comment] = [28, 30, 32].map((offset) => view.getUint16(at + offset, true));
    const path = text.decode(bytes.subarray(at + 46, at + 46 + name));
    if (view.getUint16(at + 8, true) & 1) throw new PageError(`${clipped(path)} is encrypted, which is not supported`);
    const [crc, stored, size] = [16, 20, 24].map((offset) => view.getUint32(at + offset, true));
    entries.push({ path, size, stored, crc, method: view.getUint16(at + 10, true), at: view.getUint32(at + 42, true) });
    at += 46 + name + extra + comment;
  }
  return entries;
}

// Returns the content of an entry; null unless it is what the directory says.
async function contentOf({ path, size, stored, method, crc, at }, bytes, view) {
  const [name, extra] = [26, 28].map((offset) => view.getUint16(at + offset, true));
  const start = at + 30 + name + extra;
  const here = new TextDecoder().decode(bytes.subarray(at + 30, at + 30 + name));
  if (view.getUint32(at, true) !== 0x04034b50 || here !== path || start + stored > bytes.length) return null;
  const data = bytes.subarray(start, start + stored);
  const content = method === 0 ? data.slice() : method === 8 ? await inflated(data, size) : null;
  return content?.length === size && crc32(content) === crc ? content : null;
}

/** Returns the files of an archive, {path: bytes}. Throws PageError where it is damaged or not within the limits. */
export async function unpack(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    const entries = entriesOf(bytes, view);
    requireModest(entries);
    const files = new Map();
    for (const entry of entries.filter(({ path }) => !path.endsWith("/"))) {
      const content = await contentOf(entry, bytes, view);
      if (content === null || files.has(entry.path)) throw new PageError(`the archive is damaged at ${clipped(entry.path)}`);
      files.set(entry.path, content);
    }
    return Object.fromEntries(files);
  } catch (error) {
    if (error instanceof RangeError) throw new PageError("the zip archive is damaged");
    throw error;
  }
}
