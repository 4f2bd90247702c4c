// Contrast of colors as in WCAG 2: the least ratios, and how it is computed.

/** The least contrast of text, and of large text and of what marks a control. */
export const kReadable = { text: 4.5, large: 3 };

const luminance = (rgb) => {
  const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};

/** Returns the contrast of two colors [red, green, blue] of 0 to 255, from 1 to 21. */
export function contrast(a, b) {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

/**
 * Returns what a person sees in a page: [{what, ink, ground, least}] of all texts, and of the borders of controls, which have
 * to be told from what is around them. What is disabled or hidden is left out.
 */
export const inksOf = (page, least) =>
  page.evaluate(({ text, large }) => {
    const parse = (color) => {
      const [r, g, b, a = 1] = color.match(/[\d.]+/g).map(Number);
      return color.startsWith("color(srgb") ? [255 * r, 255 * g, 255 * b, a] : [r, g, b, a];
    };
    const over = ([r, g, b, a], ground) => [r, g, b].map((c, i) => a * c + (1 - a) * ground[i]);
    // The colors of the backgrounds of an element and of those around it, the innermost last.
    const groundOf = (node) => {
      const grounds = [];
      for (let at = node; at; at = at.parentElement) grounds.unshift(parse(getComputedStyle(at).backgroundColor));
      return grounds.reduce((ground, color) => over(color, ground), [255, 255, 255]);
    };
    const opacityOf = (node) => (node ? Number(getComputedStyle(node).opacity) * opacityOf(node.parentElement) : 1);
    const seen = (color, ground, node) => over([...parse(color).slice(0, 3), parse(color)[3] * opacityOf(node)], ground);
    const isShown = (node) => node.checkVisibility({ visibilityProperty: true }) && !node.closest(":disabled, .skip, [hidden]");
    const nameOf = (node) => `${node.localName}${node.id ? `#${node.id}` : ""}.${node.getAttribute("class") ?? ""}`;
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let at = walker.nextNode(); at; at = walker.nextNode()) {
      const node = at.parentElement;
      if (!at.data.trim() || ["script", "noscript", "option"].includes(node.localName) || !isShown(node)) continue;
      const style = getComputedStyle(node);
      const ground = groundOf(node);
      const size = parseFloat(style.fontSize);
      const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      const color = node.localName === "text" ? style.fill : style.color;
      found.push({
        what: `${nameOf(node)} "${at.data.trim().slice(0, 30)}"`,
        ink: seen(color, ground, node),
        ground,
        least: isLarge ? large : text,
      });
    }
    for (const node of document.querySelectorAll("input:not([type]), textarea, select, button")) {
      if (!isShown(node)) continue;
      const style = getComputedStyle(node);
      const inner = groundOf(node);
      if (node.value) found.push({ what: `${nameOf(node)} its text`, ink: seen(style.color, inner, node), ground: inner, least: text });
      if (node.matches(".link, [role=tab], .tile")) continue; // told by their text or picture
      const ground = groundOf(node.parentElement);
      found.push({ what: `${nameOf(node)} its border`, ink: seen(style.borderTopColor, ground, node), ground, least: large });
    }
    for (const node of document.querySelectorAll("#results svg .line, #results .key i")) {
      const ground = groundOf(node.closest("section"));
      if (isShown(node))
        found.push({ what: `${nameOf(node)} a line`, ink: seen(getComputedStyle(node).color, ground, node), ground, least: large });
    }
    return found;
  }, least);
