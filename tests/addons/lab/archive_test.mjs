// Archives that the lab opens, whole and damaged.
import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32 as crcOf, deflateRawSync } from "node:zlib";

import { crc32, kLimits, requireModest, unpack } from "../../../src/addons/lab/page/archive.js";
import { PageError } from "../../../src/addons/lab/page/errors.js";

const refused = (pattern) => (error) => error instanceof PageError && pattern.test(error.message);

test("files are within the limits before one of them is unpacked", () => {
  const file = (path, size = 1) => ({ path, size });
  requireModest([file("run/checkpoints/step-1.safetensors", 256 << 20)]);
  requireModest([file(`${"a/".repeat(16)}x`), file("n".repeat(255))]);
  for (const [files, pattern] of [
    [[file("a", 200 << 20), file("b", (56 << 20) + 1)], /^the files have 257 MiB, of which at most 256 MiB are opened$/],
    [[file("a", 3 * 2 ** 30)], /^the files have 3,072 MiB/],
    [Array.from({ length: 2001 }, (_, i) => file(`${i}`)), /more than 2000 files/],
    [[file(`${"a/".repeat(600)}x`)], /is in 600 folders, one in the other; there may be 16$/],
    [[file(`a/${"n".repeat(256)}`)], /a name may have 255 characters/],
    [[file("a/../../x")], /leads out of its folder/],
    [[file("/etc/x")], /leads out of its folder/],
  ])
    assert.throws(
      () => requireModest(files),
      (error) => refused(pattern)(error) && error.message.length < 150,
    );
});

// Returns an archive of [{path, content, method?, ...}], whose other members replace those of its directory.
function zip(entries) {
  const parts = [];
  const directory = [];
  let at = 0;
  for (const { path, content, method = 8, ...other } of entries) {
    const name = Buffer.from(path);
    const raw = Buffer.from(content);
    const data = method === 8 ? deflateRawSync(raw) : raw;
    const of = { crc: crc32(raw), stored: data.length, size: raw.length, flags: 0, at, ...other };
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(name.length, 26);
    const central = Buffer.alloc(46);
    central.writeUInt32LE(0x02014b50, 0);
    central.writeUInt16LE(of.flags, 8);
    central.writeUInt16LE(method, 10);
    [of.crc, of.stored, of.size].forEach((value, i) => central.writeUInt32LE(value, 16 + 4 * i));
    central.writeUInt16LE(name.length, 28);
    central.writeUInt32LE(of.at, 42);
    parts.push(local, name, data);
    directory.push(central, name);
    at += 30 + name.length + data.length;
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(Buffer.concat(directory).length, 12);
  end.writeUInt32LE(at, 16);
  return new Uint8Array(Buffer.concat([...parts, ...directory, end]));
}

const kRun = [
  { path: "run/", content: "", method: 0 },
  { path: "run/config.yaml", content: "task: {name: reverse}\n".repeat(20) },
  { path: "run/metrics.jsonl", content: '{"step":1}\n'.repeat(50) },
  { path: "run/checkpoints/final.safetensors", content: "weights ".repeat(40), method: 0 },
];

test("an archive is unpacked", async () => {
  assert.equal(crc32(new TextEncoder().encode("123456789")), 0xcbf43926);
  if (crcOf) assert.equal(crc32(Buffer.from("é".repeat(999))), crcOf("é".repeat(999)));
  const files = await unpack(zip(kRun));
  assert.deepEqual(
    Object.entries(files).map(([path, bytes]) => [path, Buffer.from(bytes).toString()]),
    kRun.slice(1).map(({ path, content }) => [path, content]),
  );
  assert.deepEqual(Object.keys(await unpack(zip([{ path: "__proto__", content: "x" }]))), ["__proto__"]);
  assert.deepEqual(await unpack(zip([])), {});
});

test("no bit of an archive's files changes without a message", async () => {
  const whole = zip(kRun);
  const expected = JSON.stringify(await unpack(whole));
  let refusals = 0;
  for (let at = 0; at < whole.length; ++at) {
    const damaged = whole.slice();
    damaged[at] ^= 1 << (at % 8);
    const outcome = await unpack(damaged).then(JSON.stringify, (error) => error);
    if (outcome instanceof Error) {
      assert.ok(outcome instanceof PageError, `byte ${at}: ${outcome.stack}`);
      refusals += 1;
    } else {
      assert.equal(outcome, expected, `byte ${at}`); // a date, a version, a comment
    }
  }
  assert.ok(refusals > whole.length / 2, `${refusals} of ${whole.length}`);
  for (let length = 0; length < whole.length; length += 7)
    await assert.rejects(unpack(whole.slice(0, length)), PageError, `${length} bytes`);
});

test("archives that lie about sizes, or go too deep, are refused", async () => {
  const content = "x".repeat(1000);
  for (const [entries, pattern] of [
    [[{ path: "a", content, size: kLimits.bytes + 1 }], /the files have 257 MiB/],
    [[{ path: "a", content, size: 999 }], /damaged at a$/],
    [[{ path: "a", content, size: 1001 }], /damaged at a$/],
    [[{ path: "a", content, crc: 1 }], /damaged at a$/],
    [[{ path: "a", content, method: 12 }], /damaged at a$/],
    [[{ path: "a", content, stored: 100_000 }], /damaged at a$/],
    [[{ path: "a", content, at: 1 << 30 }], /damaged/],
    [[{ path: "a", content, flags: 1 }], /^a is encrypted/],
    [
      [
        { path: "a", content },
        { path: "a", content },
      ],
      /damaged at a$/,
    ],
    [[{ path: `${"d/".repeat(600)}x`, content }], /is in 600 folders/],
    [[{ path: `${"d/".repeat(600)}`, content: "" }], /is in 600 folders/],
    [[{ path: "../x", content }], /leads out/],
  ])
    await assert.rejects(unpack(zip(entries)), refused(pattern), JSON.stringify(entries[0]).slice(0, 80));
  await assert.rejects(unpack(new TextEncoder().encode("no archive")), refused(/not a whole zip archive/));
});
