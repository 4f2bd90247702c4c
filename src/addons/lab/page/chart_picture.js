// A chart as a picture that is saved: its lines with the colors they have in the page, and its texts.
import { element, kFont, themeColor } from "lab:report";

const kMargin = 12;
const kHeader = 44; // for the title, and the names of the lines

const number = (node, name) => Number(node.getAttribute(name));

// Returns the outline of an element of the chart, with its place in the picture.
function outlineOf(node) {
  const [left, top] = [kMargin, kHeader];
  const n = (name) => number(node, name);
  if (node.tagName === "line") return `M${left + n("x1")} ${top + n("y1")}L${left + n("x2")} ${top + n("y2")}`;
  if (node.tagName === "rect") return `M${left + n("x")} ${top + n("y")}h${n("width")}v${n("height")}h${-n("width")}Z`;
  if (node.tagName === "circle") {
    const [x, y, r] = [left + n("cx"), top + n("cy"), n("r")];
    return `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
  }
  return node.getAttribute("d").replace(/([\d.]+) ([\d.]+)/g, (_, x, y) => `${left + Number(x)} ${top + Number(y)}`);
}

// Returns how an element is drawn, as the style sheet has it at this moment.
function drawnAs(node) {
  const { fill, stroke, strokeWidth, strokeDasharray } = getComputedStyle(node);
  return { fill, stroke, width: parseFloat(strokeWidth), dash: (strokeDasharray.match(/[\d.]+/g) ?? []).map(Number) };
}

/** Returns a chart, an SVG element of the page, as a picture; `names` are the lines with a name, [{name, style}]. */
export function chartPicture(svg, title, names) {
  const context = element("canvas").getContext("2d");
  context.font = kFont;
  const widthOf = (text) => Math.ceil(context.measureText(text).width);
  const shown = [...svg.querySelectorAll("line, path, circle, rect")].filter((node) => getComputedStyle(node).display !== "none");
  const paths = shown.map((node) => ({ d: outlineOf(node), ...drawnAs(node) }));
  const texts = [...svg.querySelectorAll("text")].map((node) => ({
    text: node.textContent,
    x: kMargin + number(node, "x"),
    y: kHeader + number(node, "y") - 4, // from the base line to the middle
    align: node.getAttribute("text-anchor"),
  }));
  let x = kMargin;
  for (const { name, style } of names) {
    const line = svg.querySelector(`path.${style}`);
    paths.push({ ...drawnAs(line), fill: "none", d: `M${x} 34L${x + 18} 34` });
    texts.push({ text: name, x: x + 24, y: 34, align: "start" });
    x += 24 + widthOf(name) + 14;
  }
  texts.push({ text: title, x: kMargin, y: 16, align: "start", chosen: true });
  context.font = `bold ${kFont}`;
  const width = Math.max(number(svg, "width") + 2 * kMargin, x, widthOf(title) + 2 * kMargin);
  const height = number(svg, "height") + kHeader + kMargin;
  return { title, width, height, rectangles: [[0, 0, width, height, themeColor("panel")]], texts, paths };
}
