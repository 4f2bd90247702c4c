// Saves the run as an archive, and opens archives and model files.
import { zipSync } from "fflate";
import { element, state } from "lab:report";
import { kLimits, requireModest, unpack } from "./archive.js";
import { call } from "./engine.js";
import { PageError, explained } from "./errors.js";
import { useOwn } from "./own.js";
import { hasPairs, isData } from "./pairs.js";
import { load, pause, say, sayError, setOwn, setText } from "./session.js";

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
    return `Not saved: ${explained(error)}.`;
  }
}

// Returns files without a folder that holds them all.
function withoutFolder(files) {
  const names = Object.keys(files);
  const folder = names[0]?.match(/^[^/]+\//)?.[0];
  if (!folder || !names.every((name) => name.startsWith(folder))) return files;
  return Object.fromEntries(names.map((name) => [name.slice(folder.length), files[name]]));
}

// Opens {path: bytes}: a run, weights with their config unless they hold it, a config with its data, or data.
async function openContents(contents) {
  const names = Object.keys(contents);
  const text = (name) => {
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(contents[name]);
    } catch {
      throw new PageError(`${name} is not a text in UTF-8`);
    }
  };
  const folders = names.map((name) => name.match(/^((?:.*\/)?)checkpoints\/[^/]+$/)?.[1]);
  const runs = new Set(folders.filter((folder) => folder !== undefined));
  const of = (pattern) => names.filter((name) => pattern.test(name));
  const [weights, configs] = [/\.safetensors$/i, /^[^/]*\.ya?ml$/i].map(of);
  if (runs.size > 1) throw new PageError(`there are ${runs.size} runs; open one`);
  if (runs.size) return load(contents, { run: [...runs][0] });
  if (weights.length > 1) throw new PageError(`there are ${weights.length} files of weights; open one`);
  const config = configs.length > 1 ? configs.find((name) => name === "config.yaml") : configs[0];
  if (configs.length && !config) throw new PageError(`there are ${configs.length} configs; name the one to open config.yaml`);
  if (weights.length) return load(contents, { config: config && text(config) });
  if (config) {
    const others = names.filter((name) => name !== config);
    setOwn(Object.fromEntries(others.map((name) => [name, text(name)])));
    return setText(text(config), { keepRun: false });
  }
  if (names.length === 1 && isData(names[0])) {
    const content = text(names[0]);
    return useOwn(content, /\.txt$/i.test(names[0]) && !hasPairs(content) ? "letters" : "pairs", names[0].split("/").at(-1));
  }
  const what = names.length === 1 ? `${names[0]} is` : `these ${names.length} files are`;
  throw new PageError(
    `${what} no run (a .zip or its directory), weights (.safetensors), config (.yaml) or data (one .tsv, .csv, .jsonl, .conllu, .conll, .bio, .iob or .txt)`,
  );
}

async function bytesOf(path, file) {
  try {
    return new Uint8Array(await file.arrayBuffer());
  } catch {
    throw new PageError(`${path} cannot be read; it may have changed since it was chosen`);
  }
}

/** Opens files that were chosen or dropped, of which find() returns [[path, File]]. */
async function openFiles(find) {
  try {
    const found = await find();
    requireModest(found.map(([path, { size }]) => ({ path, size })));
    const archive = found.find(([path]) => /\.zip$/i.test(path));
    if (archive && found.length > 1) throw new PageError("there is an archive among other files; open it alone");
    const contents = {};
    for (const [path, file] of found) contents[path] = await bytesOf(path, file);
    await openContents(withoutFolder(archive ? await unpack(contents[archive[0]]) : contents));
  } catch (error) {
    if (error.problems) sayError(error, "Not opened: ");
    else say(`Not opened: ${explained(error)}.`);
  }
}

// Returns what is in a dropped directory, a FileSystemDirectoryHandle or FileSystemDirectoryEntry.
async function childrenOf(directory) {
  const found = [];
  if (directory.values) {
    for await (const child of directory.values()) found.push(child);
    return found;
  }
  const reader = directory.createReader();
  const next = () => new Promise((done, failed) => reader.readEntries(done, failed));
  for (let some = await next(); some.length; some = await next()) found.push(...some);
  return found;
}

// Returns [[path, File]] of files, and of those in directories.
async function filesIn(entries, folder = "", found = []) {
  for (const entry of entries) {
    const one = await entry;
    const path = folder + one.name;
    if (path.split("/").length - 1 > kLimits.folders) requireModest([{ path, size: 0 }]);
    if (one instanceof File) found.push([path, one]);
    else if (one.isDirectory || one.kind === "directory") await filesIn(await childrenOf(one), `${path}/`, found);
    else found.push([path, await (one.getFile?.() ?? new Promise((done, failed) => one.file(done, failed)))]);
    if (found.length > kLimits.files) throw new PageError(`there are more than ${kLimits.files} files`);
  }
  return found;
}

// Returns a dropped file or directory. Chromium lets pages that are opened from a file read directories by handles alone.
function dropped(item) {
  const entry = item.webkitGetAsEntry();
  return entry?.isDirectory ? (item.getAsFileSystemHandle?.() ?? entry) : item.getAsFile();
}

/** Returns a button that opens files; files dropped on the page are opened too. */
export function openButton() {
  const input = element("input", {
    type: "file",
    id: "open-files",
    multiple: true,
    hidden: true,
    accept: ".zip,.safetensors,.yaml,.yml,.tsv,.csv,.jsonl,.conllu,.conll,.bio,.iob,.txt",
  });
  input.addEventListener("change", () => {
    const chosen = [...input.files];
    openFiles(() => filesIn(chosen));
    input.value = "";
  });
  const holdsFiles = ({ dataTransfer }) => dataTransfer.types.includes("Files");
  document.addEventListener("dragover", (event) => holdsFiles(event) && event.preventDefault());
  document.addEventListener("drop", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    const items = [...event.dataTransfer.items].filter(({ kind }) => kind === "file");
    const entries = items.map(dropped);
    openFiles(() => filesIn(entries));
  });
  return [
    input,
    element("button", { id: "open", title: "A saved run (.zip), or .safetensors with its config", click: () => input.click() }, "Open …"),
  ];
}
