// Raw deflate, by the streams of the browser.

async function through(bytes, stream, limit) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts = [];
  let size = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    size += part.value.length;
    if (size > limit) {
      await reader.cancel();
      return null;
    }
    parts.push(part.value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** Returns the bytes in raw deflate. */
export const deflated = (bytes) => through(bytes, new CompressionStream("deflate-raw"), Infinity);

/** Returns what was deflated; null if it has more bytes than the limit, or is damaged. */
export const inflated = (bytes, limit) => through(bytes, new DecompressionStream("deflate-raw"), limit).catch(() => null);
