// The map of instances: points on one canvas, on top of them a second one with what is chosen.
import { palette, readTheme } from "./colours.js";
import { nearest, thin, Viewport } from "./geometry.js";
import { changes, inputs } from "./inputs.js";
import { drawLegend } from "./legend.js";
import { drawOverlay } from "./overlay.js";
import { unpackColours, unpackPlaces } from "./packing.js";
import { createPainter, isFew } from "./painters.js";
import { listenTo } from "./pointer.js";

const MODES = ["move", "lasso"];
const NO_WEBGL = "Without WebGL, so slower · wheel to zoom · Shift and drag to lasso";
const maps = new WeakMap(); // by root; the default export is called again at every rerun

export default function ({ data, parentElement, setTriggerValue }) {
  let map = maps.get(parentElement);
  if (!map) maps.set(parentElement, (map = new InstanceMap(parentElement)));
  map.send = setTriggerValue;
  if (data instanceof Uint8Array) map.show(data);
  return () => {
    map.destroy();
    maps.delete(parentElement);
  };
}

class InstanceMap {
  constructor(root) {
    this.root = root;
    this.part = (name) => root.querySelector(`[data-part="${name}"]`);
    this.frame = this.part("frame");
    this.overlay = this.part("overlay");
    this.viewport = new Viewport();
    this.places = this.colours = this.points = this.painter = this.theme = /** @type {any} */ (null);
    this.marks = { at: -1, hovered: -1, lasso: [] };
    this.shown = ""; // which colours, in which theme
    this.asked = 0;
    this.send = (_name, _value) => {};
    this.pointer = listenTo(this.overlay, this.viewport, this);
    for (const mode of MODES) this.part(mode).onclick = () => this.setMode(mode);
    this.part("whole").onclick = () => this.showWhole();
    this.resized = new ResizeObserver(([{ contentRect }]) => this.resize(contentRect));
    this.resized.observe(this.frame);
    const { signal } = (this.listeners = new AbortController());
    const recolour = () => setTimeout(() => this.colour(), 100); // once the page has its colours
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour, { signal });
    changes.addEventListener("marks", () => this.takeMarks(), { signal });
    changes.addEventListener("places", () => this.place(), { signal });
  }

  destroy() {
    this.resized.disconnect();
    this.listeners.abort();
    this.painter?.destroy();
  }

  show(data) {
    this.colours = unpackColours(data);
    this.place();
  }

  /** Draw once colours and places are there and belong together. */
  place() {
    const { colours, viewport } = this;
    if (!colours || !inputs.places) return;
    if (this.places?.layout !== colours.layout) this.places = unpackPlaces(inputs.places);
    if (this.places.layout !== colours.layout) return;
    const isNew = this.points?.layout !== colours.layout;
    this.points = { ...colours, ...this.places };
    if (isNew) {
      viewport.reset();
      this.takeMarks();
    }
    this.colour();
  }

  colour() {
    const { points } = this;
    if (!points || !this.viewport.width) return;
    this.theme = readTheme(this.root.host ?? this.root);
    const wanted = `${points.revision} ${this.theme.key}`;
    if (wanted === this.shown) return;
    const inks = palette(points, this.theme);
    drawLegend(this.part("legend"), points, inks);
    if (this.painter?.isFew !== isFew(points)) this.takePainter();
    this.painter.load(points, inks, this.theme);
    this.paint();
    this.shown = wanted;
    this.frame.dataset.drawn = points.revision; // what tests wait for
  }

  /** A canvas has one kind of context for life: another painter needs another canvas. */
  takePainter() {
    this.painter?.destroy();
    const canvas = this.part("canvas").cloneNode();
    this.part("canvas").replaceWith(canvas);
    this.painter = { isFew: isFew(this.points), canvas, ...createPainter(canvas, this.points) };
    if (!this.painter.isFew && !this.painter.isWebGL) this.part("note").textContent = NO_WEBGL;
  }

  paint() {
    if (!this.viewport.width || !this.viewport.height) return; // on its way out
    this.viewport.fit(this.painter.canvas, this.overlay);
    this.painter.paint(this.viewport);
    this.paintMarks();
  }

  paintMarks() {
    const marks = { ...this.marks, isDrawing: this.pointer.isDrawing };
    drawOverlay(this.overlay, this.viewport, this.points, marks, this.theme);
  }

  /** Paint at most once a frame, however fast the mouse is. */
  soon(paint) {
    if (this.asked || !this.shown) return;
    this.asked = requestAnimationFrame(() => {
      this.asked = 0;
      paint();
    });
  }

  /** Show what the page marks, if it means this map. */
  takeMarks() {
    if (!this.points || inputs.marks?.layout !== this.points.layout) return;
    Object.assign(this.marks, { at: inputs.marks.at, lasso: inputs.marks.lasso });
    if (this.shown) this.paintMarks();
  }

  // ---- what a person does

  moved() {
    this.soon(() => this.paint());
  }

  pointAt(spot) {
    return this.shown ? nearest(this.points, spot, this.viewport.scale) : -1;
  }

  hovered(spot) {
    const at = this.pointAt(spot);
    this.overlay.style.cursor = at < 0 ? "" : "pointer";
    if (at !== this.marks.hovered) this.soon(() => this.paintMarks());
    this.marks.hovered = at;
  }

  clicked(spot) {
    const at = this.pointAt(spot);
    if (at < 0) return;
    this.marks.at = at;
    this.paintMarks();
    this.send("picked", at);
  }

  drawn(corners, isDone) {
    if (!this.shown) return;
    this.marks.lasso = corners;
    this.paintMarks();
    if (isDone) this.send("lasso", thin(corners));
  }

  setMode(mode) {
    this.pointer.mode = mode;
    for (const one of MODES) this.part(one).setAttribute("aria-pressed", String(one === mode));
  }

  showWhole() {
    this.viewport.reset();
    if (this.shown) this.paint();
  }

  /** Asking the frame itself for its size would have the whole page laid out at once. */
  resize({ width, height }) {
    const isSame = width === this.viewport.width && height === this.viewport.height;
    Object.assign(this.viewport, { width, height });
    if (!this.points) return;
    if (!this.shown) this.colour();
    else if (!isSame) this.paint();
  }
}
