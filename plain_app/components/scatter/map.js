// The map of instances, drawn by regl-scatterplot 1.16 (MIT, Fritz Lekschas) or, without WebGL, on
// a plain canvas. Build, from a folder with `npm install regl-scatterplot@1.16 esbuild`:
//   npx esbuild map.js --bundle --minify --format=esm --legal-comments=inline --outfile=map.bundle.js
import createScatterplot from "regl-scatterplot";

const MAX_CORNERS = 240;
const SURE = "#3f8f90";
const DOUBTFUL = "#d08a3e";
const maps = new WeakMap(); // by root; the default export is called again at every rerun

export default function ({ data, parentElement, setTriggerValue }) {
  let map = maps.get(parentElement);
  if (!map) maps.set(parentElement, (map = createMap(parentElement)));
  map.send = setTriggerValue;
  if (data instanceof Uint8Array) map.show(unpack(data));
  return () => map.destroy();
}

function unpack(bytes) {
  const buffer = bytes.slice().buffer; // a copy that begins at a multiple of four
  const [size, n] = new Uint32Array(buffer, 0, 2);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size)));
  const at = 8 + size;
  return {
    ...head,
    n,
    x: new Float32Array(buffer, at, n),
    y: new Float32Array(buffer, at + 4 * n, n),
    value: new Uint8Array(buffer, at + 8 * n, n),
  };
}

function createMap(root) {
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const [canvas, frame, note] = ["canvas", "frame", "note"].map(part);
  let points = null;
  let shown = "";
  let waiting = window.plainMapFocus; // told before this map was there
  let painter = null;
  const map = { send: () => {}, show, destroy };

  const chosen = (at) => map.send("picked", at);
  const lassoed = (corners) => map.send("lasso", thin(corners));
  const painting = () => (painter ??= createPainter(canvas, frame, note, chosen, lassoed));

  function show(next) {
    points = next;
    draw();
  }

  // One drawing at a time; what was asked for meanwhile is drawn after it.
  let drawing = Promise.resolve();
  const draw = () => (drawing = drawing.then(paint, paint));

  async function paint() {
    const theme = readTheme(root.host ?? root);
    const wanted = `${points.revision} ${theme.key}`;
    if (wanted === shown || !frame.clientWidth) return;
    shown = wanted;
    const now = points;
    const colours = palette(now, theme);
    drawLegend(part("legend"), now, colours);
    const start = performance.now();
    if (waiting !== undefined) painting().focus(waiting);
    waiting = undefined;
    await painting().draw(now, colours, theme);
    frame.dataset.drawn = now.revision; // what tests wait for
    frame.dataset.milliseconds = String(Math.round(performance.now() - start));
  }

  function setMode(mode) {
    for (const name of ["move", "lasso"]) part(name).setAttribute("aria-pressed", name === mode);
    painting().setMode(mode);
  }
  part("move").onclick = () => setMode("move");
  part("lasso").onclick = () => setMode("lasso");
  part("whole").onclick = () => painting().reset();

  const again = () => points && draw();
  const resized = new ResizeObserver(() => (painter?.resize(), again()));
  resized.observe(frame);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const themed = () => setTimeout(again, 100); // once the page has its new colours
  dark.addEventListener("change", themed);
  const focused = (event) => painting().focus(event.detail);
  window.addEventListener("plain-map-focus", focused);

  function destroy() {
    resized.disconnect();
    dark.removeEventListener("change", themed);
    window.removeEventListener("plain-map-focus", focused);
    painter?.destroy();
    maps.delete(root);
  }
  return map;
}

function createPainter(canvas, frame, note, chosen, lassoed) {
  try {
    return webglPainter(canvas, frame, chosen, lassoed);
  } catch {
    for (const button of note.parentElement.querySelectorAll("button")) button.hidden = true;
    note.textContent = "Without WebGL: drawn plainly, without zoom · click, or drag to lasso";
    return canvasPainter(canvas, frame, chosen, lassoed);
  }
}

function webglPainter(canvas, frame, chosen, lassoed) {
  const size = () => ({ width: frame.clientWidth, height: frame.clientHeight });
  let { width } = size();
  const plot = createScatterplot({
    canvas,
    ...size(),
    aspectRatio: 1,
    actionKeyMap: { lasso: "shift" },
    lassoOnLongPress: false,
    deselectOnDblClick: false,
    showReticle: false,
    pointSizeSelected: 3,
    pointOutlineWidth: 2,
    cameraDistance: 1.05,
  });
  let layout = null;
  let marked = [];
  let isLasso = false;
  let inks = { own: [], text: [] };
  const style = () => {
    // One marked instance stands out; many keep their colours.
    const one = marked.length === 1;
    plot.set({ pointSizeSelected: one ? 9 : 1, pointColorActive: one ? inks.text : inks.own });
  };
  const mark = () => {
    if (!layout || !marked.length) return;
    style();
    plot.select(marked, { preventEvent: true });
  };
  plot.subscribe("lassoStart", () => (isLasso = true));
  plot.subscribe("lassoEnd", ({ coordinates }) => {
    setTimeout(() => (isLasso = false)); // the selection it makes is not a click
    if (coordinates?.length > 2) lassoed(coordinates);
  });
  plot.subscribe("select", ({ points }) => {
    marked = points;
    style();
    if (!isLasso && points.length === 1) chosen(points[0]);
  });
  plot.subscribe("deselect", () => (marked = []));
  return {
    async draw(points, colours, theme) {
      inks = { own: colours, text: colours.map(() => theme.text) };
      plot.set({
        backgroundColor: theme.background,
        pointColor: colours,
        pointColorActive: inks.own, // used only where all three lists are equally long
        pointColorHover: inks.text,
        lassoColor: theme.primary,
        colorBy: "valueA",
        pointSize: points.n > 50000 ? 2 : points.n > 10000 ? 3 : 5,
        opacity: points.n > 50000 ? 0.75 : 0.9,
      });
      const options = { zDataType: "categorical" };
      if (layout === points.layout) options.spatialIndex = plot.get("spatialIndex");
      else layout = null;
      await plot.draw({ x: points.x, y: points.y, valueA: points.value }, options);
      layout = points.layout;
      mark();
    },
    setMode: (mode) => plot.set({ mouseMode: mode === "lasso" ? "lasso" : "panZoom" }),
    reset: () => plot.reset(),
    resize() {
      if (frame.clientWidth && frame.clientWidth !== width) plot.set(size());
      width = frame.clientWidth || width;
    },
    focus(at) {
      marked = [at];
      mark();
    },
    destroy: () => plot.destroy(),
  };
}

function canvasPainter(canvas, frame, chosen, lassoed) {
  const pen = canvas.getContext("2d");
  let drawn = null;
  let path = null;
  let marked = -1;
  const scale = () => Math.min(canvas.width, canvas.height) / 2.2;
  const toPixel = (x, y) => [canvas.width / 2 + x * scale(), canvas.height / 2 - y * scale()];
  const toMap = (event) => {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return [(x - canvas.width / 2) / scale(), (canvas.height / 2 - y) / scale()];
  };
  function paint() {
    const [points, colours, theme] = drawn;
    [canvas.width, canvas.height] = [frame.clientWidth, frame.clientHeight];
    pen.fillStyle = theme.background;
    pen.fillRect(0, 0, canvas.width, canvas.height);
    const size = points.n > 20000 ? 2 : 4;
    for (let at = 0; at < points.n; at++) {
      const [x, y] = toPixel(points.x[at], points.y[at]);
      pen.fillStyle = colours[points.value[at]];
      pen.fillRect(x - size / 2, y - size / 2, size, size);
    }
    if (marked >= 0) ring(points, theme);
  }
  function ring(points, theme) {
    pen.strokeStyle = theme.text;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(...toPixel(points.x[marked], points.y[marked]), 6, 0, 2 * Math.PI);
    pen.stroke();
  }
  function nearest([x, y]) {
    const { n, x: xs, y: ys } = drawn[0];
    let best = -1;
    let least = (10 / scale()) ** 2;
    for (let at = 0; at < n; at++) {
      const distance = (xs[at] - x) ** 2 + (ys[at] - y) ** 2;
      if (distance < least) [best, least] = [at, distance];
    }
    return best;
  }
  canvas.onpointerdown = (event) => (path = [toMap(event)]);
  canvas.onpointermove = (event) => {
    if (!path) return;
    path.push(toMap(event));
    pen.strokeStyle = drawn[2].primary;
    pen.lineWidth = 2;
    pen.beginPath();
    for (const corner of path.slice(-2)) pen.lineTo(...toPixel(...corner));
    pen.stroke();
  };
  canvas.onpointerup = () => {
    const corners = path ?? [];
    path = null;
    if (corners.length > 4) return lassoed(corners);
    marked = corners.length ? nearest(corners[0]) : -1;
    paint();
    if (marked >= 0) chosen(marked);
  };
  return {
    async draw(...all) {
      drawn = all;
      paint();
    },
    setMode() {},
    reset: () => drawn && paint(),
    resize: () => drawn && paint(),
    focus(at) {
      marked = at;
      if (drawn) paint();
    },
    destroy() {},
  };
}

function thin(corners) {
  const step = Math.ceil(corners.length / MAX_CORNERS);
  return corners.filter((_, at) => at % step === 0).map(([x, y]) => [x, y]);
}

function readTheme(element) {
  const style = getComputedStyle(element);
  const read = (name, otherwise) => style.getPropertyValue(`--st-${name}`).trim() || otherwise;
  const theme = {
    background: hex(read("background-color", "#ffffff")),
    text: hex(read("text-color", "#222222")),
    primary: hex(read("primary-color", SURE)),
    names: read("chart-categorical-colors", "").split(/,(?![^(]*\))/).filter(Boolean).map(hex),
  };
  theme.key = [theme.background, theme.text, theme.primary, ...theme.names].join();
  return theme;
}

const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

function rgb(colour) {
  pen.fillStyle = colour.trim();
  pen.fillRect(0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}

const toHex = (parts) =>
  "#" + parts.map((one) => Math.round(one).toString(16).padStart(2, "0")).join("");
const hex = (colour) => toHex(rgb(colour));
const mix = (a, b, part) => a.map((one, at) => one + (b[at] - one) * part);

function palette({ classes, legend }, theme) {
  const [background, text] = [rgb(theme.background), rgb(theme.text)];
  const faint = toHex(mix(background, text, 0.14));
  const [sure, doubtful] = [rgb(SURE), rgb(DOUBTFUL)];
  const middle = mix(background, text, 0.38);
  const pale = mix(background, text, 0.2);
  const step = (at) => at / Math.max(classes - 1, 1);
  const scales = {
    confidence: (at) =>
      step(at) < 0.5
        ? mix(doubtful, middle, step(at) * 2)
        : mix(middle, sure, step(at) * 2 - 1),
    amount: (at) => mix(pale, doubtful, step(at)),
  };
  const names = theme.names.length ? theme.names : [SURE, DOUBTFUL];
  const one = (at) =>
    legend.scale === "names" ? names[at % names.length] : toHex(scales[legend.scale](at));
  return [...Array.from({ length: classes }, (_, at) => one(at)), faint];
}

function drawLegend(box, { classes, legend }, colours) {
  const make = (tag, kind, text = "") => {
    const element = document.createElement(tag);
    element.className = kind;
    element.textContent = text; // names are data: never markup
    return element;
  };
  const swatch = (colour, text) => {
    const entry = make("span", "entry");
    const dot = make("i", "dot");
    dot.style.background = colour;
    entry.append(dot, make("span", "name", text));
    entry.title = text;
    return entry;
  };
  const parts = [make("strong", "title", legend.title)];
  if (legend.scale === "names") {
    legend.names.forEach((name, at) =>
      parts.push(swatch(colours[at], `${name} · ${legend.counts[at].toLocaleString()}`)),
    );
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
