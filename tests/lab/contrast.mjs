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
