// Starts the page: the header, the areas, the engine.
import { element, state, subscribe, themeButton, update } from "lab:report";
import configs from "lab:configs";
import { ask, call } from "./engine.js";
import { explained } from "./errors.js";
import { openButton, save } from "./files.js";
import { headsArea } from "./heads.js";
import { lessonArea, lessonChoice } from "./lesson.js";
import { setup } from "./setup.js";
import { openAddress, share } from "./share.js";
import { follow } from "./trace.js";
import { results, training } from "./training.js";

function header() {
  const note = element("output", { class: "note", id: "note", "aria-live": "polite" });
  const act = (id, text, title, run) => {
    const button = element("button", { id, title }, text);
    button.addEventListener("click", async () => {
      note.textContent = await run();
    });
    return button;
  };
  subscribe(["model"], () => {
    note.textContent = "";
  });
  return [
    element("h1", {}, element("span", {}, "thimble"), "lab"),
    lessonChoice(),
    element(
      "div",
      { class: "actions" },
      act("share", "Share link", "A link with config, seed and pasted data", share),
      act("save", "Save run", "An archive that the native program resumes", save),
      openButton(),
      themeButton(),
    ),
    note,
  ];
}

// Says what the page computes with, and how much memory it takes.
function footer() {
  const line = element("span");
  subscribe(["model", "phase", "step"], async () => {
    if (state.phase === "training" || state.phase === "starting") return;
    const answers = await Promise.all([call("about"), call("hash")]).catch(() => null);
    if (!answers) return;
    const [{ version, arithmetic, memory }, { weights_hash: hash, step }] = answers;
    const megabytes = (bytes) => `${Math.round(bytes / 1e6)} MB`;
    line.textContent =
      `thimble ${version}, arithmetic ${arithmetic}; weights ${hash} at step ${step}; ` +
      `${megabytes(memory.used)} of ${megabytes(memory.limit)} of memory. `;
  });
  return [line, "The page is self-contained: it loads nothing from the network and keeps your data here."];
}

async function start() {
  document.getElementById("top").append(...header().flat());
  const main = document.getElementById("lab");
  subscribe(["checking"], () => main.setAttribute("aria-busy", String(state.checking)));
  try {
    const [schema, facts, { scores }] = [await ask("schema"), await ask("fields"), await ask("about")];
    update({ scores });
    main.append(lessonArea(), element("div", { class: "areas" }, training(), headsArea(), results(), setup(schema, facts)));
    document.getElementById("foot").append(...footer());
    follow();
    await openAddress(configs["reverse.yaml"]);
  } catch (error) {
    main.append(element("p", { class: "warning", role: "alert" }, `The lab cannot start: ${explained(error)}`));
  }
  addEventListener("hashchange", () => openAddress(""));
}

start();
