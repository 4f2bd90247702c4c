// Saves the run as an archive, and opens archives and model files.
import { unzipSync, zipSync } from "fflate";
import { element, state } from "lab:report";
import { call } from "./engine.js";
import { load, pause, say, sayError } from "./session.js";

const kLimit = 256 << 20; // bytes that are opened
const kFiles = 2000;

/** Offers bytes as a download. */
function download(bytes, name, type) {
  const href = URL.createObjectURL(new Blob([bytes], { type }));
  element("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

/** Saves the run as an archive of its directory, which `thimble train DIRECTORY --resume` goes on with. */
export async function save() {
  pause();
  try {
    const { files, name } = await call("save");
    const stored = Object.entries(files).map(([path, bytes]) => [path, [bytes, { level: path.endsWith("safetensors") ? 0 : 6 }]]);
    download(zipSync(Object.fromEntries(stored)), `${state.model.config.task.name}-${state.step}.zip`, "application/zip");
    return `Saved. Unpack the archive and go on with: thimble train ${name} --resume`;
  } catch (error) {
    return error.message;
  }
}

// Returns the files of an archive, without a folder that holds them all. Throws Error where they are too large.
function unpack(bytes) {
  let [size, count] = [0, 0];
  const files = unzipSync(bytes, {
    filter: (file) => {
      size += file.originalSize;
      count += 1;
      if (size > kLimit || count > kFiles)
        throw new Error(`the archive is larger than ${kLimit >> 20} MB or has more than ${kFiles} files`);
      return !file.name.endsWith("/");
    },
  });
  const names = Object.keys(files);
  const folder = names[0]?.match(/^[^/]+\//)?.[0];
  if (!folder || !names.every((name) => name.startsWith(folder))) return files;
  return Object.fromEntries(names.map((name) => [name.slice(folder.length), files[name]]));
}

/** Opens files that were chosen or dropped: an archive of a run, or a .safetensors with its config. */
async function openFiles(list) {
  try {
    const total = list.reduce((sum, file) => sum + file.size, 0);
    if (total > kLimit) throw new Error(`the files have ${total >> 20} MB, of which at most ${kLimit >> 20} are opened`);
    let files = {};
    for (const file of list) {
      const bytes = new Uint8Array(await file.arrayBuffer());
      if (/\.zip$/i.test(file.name)) files = { ...files, ...unpack(bytes) };
      else files[file.name] = bytes;
    }
    await load(files);
  } catch (error) {
    if (error.problems) sayError(error);
    else say(`Not opened: ${error.message}.`);
  }
}

/** Returns a button that opens files; files dropped on the page are opened too. */
export function openButton() {
  const input = element("input", {
    type: "file",
    id: "open-files",
    multiple: true,
    hidden: true,
    accept: ".zip,.safetensors,.yaml,.json,.jsonl",
  });
  input.addEventListener("change", () => {
    openFiles([...input.files]);
    input.value = "";
  });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length) openFiles([...event.dataTransfer.files]);
  });
  return [
    input,
    element("button", { id: "open", title: "A saved run (.zip), or .safetensors with its config", click: () => input.click() }, "Open …"),
  ];
}
