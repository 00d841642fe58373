// Colours of the page and of the points.

const SURE = "#3f8f90";
const DOUBTFUL = "#d08a3e";

export function readTheme(element) {
  const style = getComputedStyle(element);
  const read = (name, otherwise) => style.getPropertyValue(`--st-${name}`).trim() || otherwise;
  const theme = {
    background: hex(read("background-color", "#ffffff")),
    text: hex(read("text-color", "#222222")),
    primary: hex(read("primary-color", SURE)),
    font: read("font", "sans-serif"),
    names: read("chart-categorical-colors", "")
      .split(/,(?![^(]*\))/)
      .filter(Boolean)
      .map(hex),
  };
  return { ...theme, key: [theme.background, theme.text, theme.primary, ...theme.names].join() };
}

let pen; // a canvas that knows colours by any name

export function rgb(colour) {
  if (/^#[0-9a-f]{6}$/i.test(colour)) return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  pen ??= document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  pen.fillStyle = colour.trim();
  pen.fillRect(0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}

const toHex = (parts) => "#" + parts.map((one) => Math.round(one).toString(16).padStart(2, "0")).join("");
const hex = (colour) => toHex(rgb(colour));
const mix = (a, b, part) => a.map((one, at) => one + (b[at] - one) * part);

/** The colours of classes of points; the last is of points without a value. */
export function palette({ classes, legend }, theme) {
  const shade = (part) => mix(rgb(theme.background), rgb(theme.text), part);
  const [sure, doubtful, middle, pale] = [rgb(SURE), rgb(DOUBTFUL), shade(0.38), shade(0.2)];
  const names = theme.names.length ? theme.names : [SURE, DOUBTFUL];
  const scales = {
    names: (_, at) => names[at % names.length],
    confidence: (step) => toHex(step < 0.5 ? mix(doubtful, middle, step * 2) : mix(middle, sure, step * 2 - 1)),
    amount: (step) => toHex(mix(pale, doubtful, step)),
  };
  const one = (_, at) => scales[legend.scale](at / Math.max(classes - 1, 1), at);
  return [...Array.from({ length: classes }, one), toHex(shade(0.14))];
}
