// A panel of sliders. The latest position is sent, and the next only when its answer was drawn.
import { make } from "../elements.js";

const panels = new WeakMap(); // by root; the default export is called again at every rerun
const THUMB = 16; // pixels a thumb takes from the length of its track
const PATIENCE = 10000; // milliseconds after which an answer is given up

export default function ({ data, parentElement, setTriggerValue }) {
  let panel = panels.get(parentElement);
  if (!panel) panels.set(parentElement, (panel = new Panel(parentElement.querySelector('[data-part="panel"]'))));
  panel.send = setTriggerValue;
  panel.show(data);
  return () => panels.delete(parentElement);
}

export class Panel {
  constructor(box) {
    this.box = box;
    this.rows = new Map(); // by the slider's name
    this.number = Date.now(); // of the last move; grows over reloads too
    this.waiting = 0; // the move whose answer is not drawn yet
    this.sentAt = 0;
    this.next = null; // the name of a slider that moved meanwhile
    this.send = (_name, _value) => {};
  }

  show({ sliders, answered }) {
    const names = sliders.map((one) => `${one.name} ${one.stops.length}`).join();
    if (this.box.dataset.names !== names) this.build(sliders, names);
    if (this.waiting && answered < this.waiting) return;
    this.waiting = 0;
    this.box.dataset.answered = answered; // what tests wait for
    if (this.next !== null) return this.move(this.next);
    for (const one of sliders) place(this.rows.get(one.name), one, one.at);
  }

  build(sliders, names) {
    this.rows = new Map(sliders.map((one) => [one.name, this.createRow(one)]));
    this.box.replaceChildren(...[...this.rows.values()].map((row) => row.element));
    this.box.dataset.names = names;
  }

  createRow(slider) {
    const [element, value, input, mark] = [make("div", "row"), make("output", "value"), make("input"), make("i")];
    const row = { element, value, input, mark, slider };
    const name = Object.assign(make("label", "name", slider.label), { title: slider.help });
    const range = { type: "range", min: 0, max: slider.stops.length - 1, step: 1 };
    Object.assign(row.input, { ...range, ariaLabel: slider.label });
    row.input.dataset.name = slider.name;
    row.mark.title = "as in the run";
    const track = make("div", "track");
    track.append(row.mark, row.input);
    row.element.append(name, track, row.value);
    const moveTo = (at) => {
      place(row, row.slider, at);
      this.move(slider.name);
    };
    row.input.oninput = () => moveTo(Number(row.input.value));
    row.input.ondblclick = () => moveTo(row.slider.own);
    return row;
  }

  move(name) {
    if (this.waiting && performance.now() - this.sentAt < PATIENCE) return void (this.next = name);
    this.next = null;
    this.sentAt = performance.now();
    this.waiting = this.number = Math.max(this.number + 1, Date.now());
    const places = Object.fromEntries([...this.rows].map(([key, row]) => [key, Number(row.input.value)]));
    this.send("moved", { number: this.number, name, places });
  }
}

function place(row, slider, at) {
  row.slider = slider;
  row.input.value = String(at);
  row.input.disabled = slider.is_disabled;
  row.value.textContent = slider.stops[at];
  row.input.setAttribute("aria-valuetext", slider.stops[at]);
  row.element.classList.toggle("moved", at !== slider.own);
  row.element.classList.toggle("off", slider.is_disabled);
  const part = slider.own / Math.max(slider.stops.length - 1, 1);
  row.mark.style.left = `calc(${THUMB / 2}px + (100% - ${THUMB}px) * ${part})`;
}
