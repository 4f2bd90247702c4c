// The chosen head and what is shown of it, in the address of the page: a link opens the report at that head. An address
// is #head=layer.1.3&beside=layer.0.2&example=4, or show=mean, or example=input for the user's own sequence.

function headPath(index) {
  const { layer, head } = report.heads[index];
  return `${layerName(layer).replace(" ", ".")}.${head}`;
}

function address() {
  const shown = state.source === "mean" ? "show=mean" : `example=${state.example < ownInputs ? "input" : state.example + 1 - ownInputs}`;
  return `#head=${headPath(state.head)}${state.beside === null ? "" : `&beside=${headPath(state.beside)}`}&${shown}`;
}

// What the address asks for, of what this report has; null when it does not name a head.
function addressed() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const find = (name) => report.heads.findIndex((_, index) => headPath(index) === asked.get(name));
  if (find("head") < 0) return null;
  const changes = { head: find("head"), beside: find("beside") < 0 ? null : find("beside") };
  const number = asked.get("example") === "input" ? ownInputs - 1 : Number(asked.get("example") ?? NaN) - 1 + ownInputs;
  if (asked.get("show") === "mean") changes.source = "mean";
  else if (report.examples?.[number]) Object.assign(changes, { source: "example", example: number });
  return changes;
}

// Keeps the address and the state the same. Links to sections stay what they are for the browser; afterwards the address
// names the head again.
function followAddress() {
  let timer;
  const write = () => history.replaceState(null, "", address());
  watchers.push({
    names: ["head", "beside", "source", "example"],
    draw: () => {
      clearTimeout(timer);
      timer = setTimeout(write, 100); // browsers allow only so many changes a second
    },
  });
  addEventListener("hashchange", () => {
    const changes = addressed();
    if (changes) update(changes);
    else write();
  });
  if (addressed()) document.getElementById("heads").scrollIntoView({ behavior: "instant" });
}
