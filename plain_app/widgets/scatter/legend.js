// What the colours mean. Names are data: never markup.
import { make } from "../elements.js";

export function drawLegend(box, { classes, legend }, colours) {
  const parts = [make("strong", "title", legend.title)];
  if (legend.scale === "names") {
    const text = (name, at) => `${name} · ${legend.counts[at].toLocaleString()}`;
    parts.push(...legend.names.map((name, at) => swatch(colours[at], text(name, at))));
  } else {
    const ramp = make("i", "ramp");
    const stops = colours.slice(0, classes).filter((_, at) => at % 9 === 0);
    ramp.style.background = `linear-gradient(to right, ${stops.join()})`;
    parts.push(make("span", "", legend.names[0]), ramp, make("span", "", legend.names[1]));
  }
  if (legend.n_missing)
    parts.push(swatch(colours[classes], `${legend.missing} · ${legend.n_missing.toLocaleString()}`));
  box.replaceChildren(...parts);
}

function swatch(colour, text) {
  const entry = make("span", "entry");
  const dot = make("i", "dot");
  dot.style.background = colour;
  entry.append(dot, make("span", "name", text));
  entry.title = text;
  return entry;
}
