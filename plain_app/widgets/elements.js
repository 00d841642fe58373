// Small pieces of screen. Names, texts and ids are data: they are only ever set as textContent.

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @returns {HTMLElementTagNameMap[T]}
 */
export function make(tag, kind = "", text = "") {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  if (text !== "") element.textContent = text;
  return element;
}

export function button(text, title, act) {
  const element = make("button", "", text);
  element.type = "button";
  element.title = title;
  element.onmousedown = (event) => event.preventDefault(); // keys stay with the desk
  element.onclick = act;
  return element;
}

/** @param {number[] | undefined} values */
export function sparkline(values) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 60 18");
  svg.setAttribute("class", "spark");
  svg.setAttribute("aria-hidden", "true");
  if (values && values.length > 1) {
    const line = document.createElementNS(space, "polyline");
    const point = (one, at) => `${(1 + (58 * at) / (values.length - 1)).toFixed(1)},${(17 - 16 * one).toFixed(1)}`;
    line.setAttribute("points", values.map(point).join(" "));
    svg.append(line);
  }
  return svg;
}

export const percent = (value) => (value == null ? "" : value.toFixed(2));
