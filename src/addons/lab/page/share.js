// Links that hold the config and the data that it names.
import { state } from "lab:report";
import { explained } from "./errors.js";
import { fragmentOf, read } from "./link.js";
import { ownFiles, say, setOwn, setText } from "./session.js";

/** Opens what the address holds; where that cannot be opened and nothing is open, `text` too. */
export async function openAddress(text) {
  let found = null;
  let problem = "";
  try {
    found = await read(location.hash);
  } catch (error) {
    problem = `The link cannot be opened: ${explained(error)}. Copy it again, all of it.`;
  }
  if (found) {
    setOwn(found.own);
    await setText(found.yaml, { keepRun: false });
    const hasErrors = state.problems.length > 0;
    if (hasErrors) problem = "The config of the link has errors, which are listed beside it; until they are corrected it is not open.";
    else problem = state.message;
    if (state.model || !text) return problem && say(problem);
    await setText(text, { keepRun: false });
    if (hasErrors) await setText(found.yaml);
  } else if (text) {
    await setText(text, { keepRun: false });
  }
  if (problem) say(problem);
}

/** Puts the config into the address and into the clipboard. */
export async function share() {
  try {
    const fragment = await fragmentOf(state.text, ownFiles());
    history.replaceState(null, "", fragment);
    const copied = await navigator.clipboard?.writeText(location.href).then(
      () => true,
      () => false,
    );
    return copied
      ? "The link is copied: it opens this page with this config, seed and data."
      : "The address above now holds config, seed and data.";
  } catch (error) {
    return `No link: ${explained(error)}.`;
  }
}
