// Keeps the selected head and example in the address of the page, so that a link opens the report there. An address is
// #head=1.3&beside=0.2&example=4, or show=mean or mean-end, or example=input for the user's own sequence.

const headPath = (index) => report.heads[index].name;

function address() {
  const shown = isMean() ? `show=${state.source}` : `example=${state.example < ownInputs ? "input" : state.example + 1 - ownInputs}`;
  return `#head=${headPath(state.head)}${state.beside === null ? "" : `&beside=${headPath(state.beside)}`}&${shown}`;
}

// Returns the changes of the state that the address names, or null when it does not name a head of this report.
function addressedState() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const find = (name) => report.heads.findIndex((_, index) => headPath(index) === parameters.get(name));
  if (find("head") < 0) return null;
  const changes = { head: find("head"), beside: find("beside") < 0 ? null : find("beside") };
  const number = parameters.get("example") === "input" ? ownInputs - 1 : Number(parameters.get("example") ?? NaN) - 1 + ownInputs;
  const means = lengthsVary() ? ["mean", "mean-end"] : ["mean"];
  if (means.includes(parameters.get("show"))) changes.source = parameters.get("show");
  else if (report.examples?.[number]) Object.assign(changes, { source: "example", example: number });
  return changes;
}

// Synchronizes the address and the state. A link to a section still works; afterwards the address names the head again.
function followAddress() {
  let timer;
  const write = () => history.replaceState(null, "", address());
  subscribers.push({
    names: ["head", "beside", "source", "example"],
    draw: () => {
      clearTimeout(timer);
      timer = setTimeout(write, 100); // browsers allow only so many changes a second
    },
  });
  addEventListener("hashchange", () => {
    const changes = addressedState();
    if (changes) update(changes);
    else write();
  });
  if (addressedState()) document.getElementById("heads").scrollIntoView({ behavior: "instant" });
}
