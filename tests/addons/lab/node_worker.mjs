// A thread of Node with the names that a Web Worker has.
import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";
import { parentPort, workerData } from "node:worker_threads";

globalThis.self = globalThis;
globalThis.location = { href: "blob:lab" };
globalThis.postMessage = (message, transfer) => parentPort.postMessage(message, transfer);
parentPort.on("message", (data) => globalThis.onmessage({ data }));
runInThisContext(readFileSync(workerData.bundle, "utf8"), { filename: workerData.bundle });
