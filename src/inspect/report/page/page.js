// Puts the page together.

// Light or dark as the system says, until the button says otherwise.
function themeButton() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = element("button", {
    class: "theme",
    click: () => {
      chosen = true;
      set(state.theme === "dark" ? "light" : "dark");
    },
  });
  let chosen = false;
  const set = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.textContent = theme === "dark" ? "☀ light" : "☾ dark";
    update({ theme });
  };
  system.addEventListener("change", () => {
    if (!chosen) set(system.matches ? "dark" : "light");
  });
  set(system.matches ? "dark" : "light");
  return button;
}

function heads() {
  return section("heads", "Attention", null, choices(), explorer(), tokenView(), scoresPanel());
}

function start() {
  const most = report.heads.map((h) => h.verdict === "shown").indexOf(true);
  Object.assign(state, {
    head: Math.max(most, 0),
    source: report.examples?.length ? "example" : "mean",
    query: Math.floor(report.length / 2),
    ...addressed(),
  });
  document.title = `${report.task} · thimble inspect`;
  const theme = themeButton();
  const sections = [training, headTable, heads, circuits, timeline, removal, attribution, rollout].map((make) => make()).filter(Boolean);
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
      navigation,
    );
  document.querySelector("main").append(...sections);
  followAddress();
}

start();
