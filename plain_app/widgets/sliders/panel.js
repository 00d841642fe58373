// A panel of sliders. The latest position is sent, and the next only when its answer was drawn.
const panels = new WeakMap(); // by root; the default export is called again at every rerun
const THUMB = 16; // pixels a thumb takes from the length of its track
const PATIENCE = 10000; // milliseconds after which an answer is given up

export default function ({ data, parentElement, setTriggerValue }) {
  let panel = panels.get(parentElement);
  if (!panel) panels.set(parentElement, (panel = createPanel(parentElement)));
  panel.send = setTriggerValue;
  panel.show(data);
  return () => panels.delete(parentElement);
}

function createPanel(root) {
  const box = root.querySelector('[data-part="panel"]');
  let rows = new Map();
  let number = Date.now(); // grows over reloads too
  let waiting = 0; // the move whose answer is not drawn yet
  let sent = 0;
  let next = null; // the name of a slider that moved meanwhile
  const panel = { send: () => {}, show };

  function show({ sliders, answered }) {
    const names = sliders.map((one) => `${one.name} ${one.stops.length}`).join();
    if (box.dataset.names !== names) build(sliders, names);
    if (waiting && answered < waiting) return;
    waiting = 0;
    box.dataset.answered = answered; // what tests wait for
    if (next !== null) return move(next);
    for (const one of sliders) place(rows.get(one.name), one, one.at);
  }

  function build(sliders, names) {
    rows = new Map(sliders.map((one) => [one.name, createRow(one)]));
    box.replaceChildren(...[...rows.values()].map((row) => row.element));
    box.dataset.names = names;
  }

  function createRow(one) {
    const make = (tag, kind, text = "") => {
      const element = document.createElement(tag);
      element.className = kind;
      element.textContent = text;
      return element;
    };
    const row = { element: make("div", "row"), value: make("output", "value"), slider: one };
    const name = make("label", "name", one.label);
    name.title = one.help;
    const track = make("div", "track");
    row.input = document.createElement("input");
    Object.assign(row.input, { type: "range", min: 0, max: one.stops.length - 1, step: 1 });
    row.input.setAttribute("aria-label", one.label);
    row.input.dataset.name = one.name;
    row.mark = document.createElement("i");
    row.mark.title = "as in the run";
    track.append(row.mark, row.input);
    row.element.append(name, track, row.value);
    row.input.oninput = () => {
      place(row, row.slider, Number(row.input.value));
      move(one.name);
    };
    row.input.ondblclick = () => {
      place(row, row.slider, row.slider.own);
      move(one.name);
    };
    return row;
  }

  function place(row, slider, at) {
    row.slider = slider;
    row.input.value = at;
    row.input.disabled = slider.is_disabled;
    row.value.textContent = slider.stops[at];
    row.input.setAttribute("aria-valuetext", slider.stops[at]);
    row.element.classList.toggle("moved", at !== slider.own);
    row.element.classList.toggle("off", slider.is_disabled);
    const part = slider.own / Math.max(slider.stops.length - 1, 1);
    row.mark.style.left = `calc(${THUMB / 2}px + (100% - ${THUMB}px) * ${part})`;
  }

  function move(name) {
    if (waiting && performance.now() - sent < PATIENCE) {
      next = name;
      return;
    }
    next = null;
    sent = performance.now();
    waiting = number = Math.max(number + 1, Date.now());
    const places = Object.fromEntries(
      [...rows].map(([key, row]) => [key, Number(row.input.value)]),
    );
    panel.send("moved", { number, name, places });
  }
  return panel;
}
