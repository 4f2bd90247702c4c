// Assembles the page.

function heads() {
  return section("heads", "Attention", null, choices(), meansNote(), explorer(), tokenView(), scoresPanel());
}

function start() {
  const labeled = report.heads.findIndex((h) => h.verdict === "important" && h.label);
  Object.assign(state, {
    head: Math.max(labeled, 0),
    source: report.examples?.length ? "example" : "mean",
    query: Math.floor(report.length / 2),
    ...addressedState(),
  });
  document.title = `${report.task} · thimble inspect`;
  const theme = themeButton();
  const sections = [
    patching,
    edges,
    training,
    positionLosses,
    headTable,
    heads,
    circuits,
    timeline,
    checkpointSeries,
    cumulativeAblation,
    jointAblation,
    attribution,
    rollout,
  ]
    .map((make) => make())
    .filter(Boolean);
  const navigation = element(
    "nav",
    { "aria-label": "Sections" },
    sections.map((s) => element("a", { href: `#${s.id}` }, s.dataset.title)),
  );
  document
    .getElementById("top")
    .append(
      element("div", { class: "title" }, element("h1", {}, element("span", {}, "thimble inspect"), report.task), theme),
      ...facts(),
      ...[chanceWarning()].filter(Boolean),
      navigation,
    );
  document.querySelector("main").append(...sections);
  followAddress();
}

start();
