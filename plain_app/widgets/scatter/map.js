// The map of instances: many points in WebGL, few of them pixel by pixel, which needs no context to
// be set up; on top of them a second canvas with what is chosen. No library: a map in WebGL is two
// buffers and one drawing call.

const MAX_CORNERS = 240;
const FEW = 20000; // up to so many points, pixels are quicker than WebGL
const REACH = 10; // pixels from an instance that still mean it
const SURE = "#3f8f90";
const DOUBTFUL = "#d08a3e";
const SIZES = (window.plainMapSizes ??= {}); // by layout: a map that comes back has its old size
const maps = new WeakMap(); // by root; the default export is called again at every rerun

export default function ({ data, parentElement, setTriggerValue }) {
  let map = maps.get(parentElement);
  if (!map) maps.set(parentElement, (map = createMap(parentElement)));
  map.send = setTriggerValue;
  if (data instanceof Uint8Array) map.show(data);
  return () => map.destroy();
}

function unpack(bytes) {
  const buffer = bytes.slice().buffer; // a copy that begins at a multiple of four
  const [size, n] = new Uint32Array(buffer, 0, 2);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size)));
  return { ...head, n, buffer, at: 8 + size };
}

function unpackPlaces(bytes) {
  const { layout, axes, n, buffer, at } = unpack(bytes);
  return { layout, axes, x: new Float32Array(buffer, at, n), y: new Float32Array(buffer, at + 4 * n, n) };
}

function unpackColours(bytes) {
  const { buffer, at, ...head } = unpack(bytes);
  return { ...head, value: new Uint8Array(buffer, at, head.n) };
}

function createMap(root) {
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const [frame, overlay] = ["frame", "overlay"].map(part);
  const view = createView();
  let painter = null;
  const marks = { at: -1, hovered: -1, lasso: [] };
  let points = null;
  let theme = null;
  let shown = "";
  let asked = 0;
  const map = { send: () => {}, show, destroy };

  let places = null;
  let colours = null;

  function show(data) {
    colours = unpackColours(data);
    place();
  }

  /** Draw once colours and places are there and belong together. */
  function place() {
    const sent = window.plainMapPlaces;
    if (!colours || !sent) return;
    if (places?.layout !== colours.layout) places = unpackPlaces(sent);
    if (places.layout !== colours.layout) return;
    const isNew = points?.layout !== places.layout;
    points = { ...colours, ...places };
    if (!view.width && SIZES[points.layout]) view.resize(SIZES[points.layout]);
    if (isNew) {
      view.reset();
      takeMarks(window.plainMapMarks);
    }
    colour();
  }

  function colour() {
    if (!view.width) return;
    theme = readTheme(root.host ?? root);
    const wanted = `${points.revision} ${theme.key}`;
    if (wanted === shown) return;
    const start = performance.now();
    const inks = palette(points, theme);
    drawLegend(part("legend"), points, inks);
    if (painter?.few !== points.n <= FEW) takePainter(points.n <= FEW);
    painter.load(points, inks, theme);
    paint();
    shown = wanted;
    frame.dataset.drawn = points.revision; // what tests wait for
    frame.dataset.milliseconds = String(Math.round(performance.now() - start));
  }

  /** A canvas has one kind of context for life: another painter needs another canvas. */
  function takePainter(few) {
    painter?.destroy();
    const canvas = part("canvas").cloneNode();
    part("canvas").replaceWith(canvas);
    painter = { few, canvas, ...createPainter(canvas, few, part("note")) };
  }

  function paint() {
    if (!view.width || !view.height) return; // on its way out
    view.fit(painter.canvas, overlay);
    painter.paint(view);
    paintMarks();
  }

  // At most once a frame, however fast the mouse is.
  function soon(what) {
    if (asked || !points) return;
    asked = requestAnimationFrame(() => ((asked = 0), what()));
  }

  function paintMarks() {
    const pen = overlay.getContext("2d");
    pen.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
    pen.clearRect(0, 0, view.width, view.height);
    if (points.axes) paintAxes(pen);
    pen.lineWidth = 2;
    const ring = (at, radius, ink) => {
      if (!(at >= 0 && at < points.n)) return;
      pen.strokeStyle = ink;
      pen.beginPath();
      pen.arc(...view.toPixel(points.x[at], points.y[at]), radius, 0, 2 * Math.PI);
      pen.stroke();
    };
    ring(marks.hovered, 6, theme.primary);
    ring(marks.at, 8, theme.text);
    pen.strokeStyle = theme.primary;
    pen.beginPath();
    for (const corner of marks.lasso) pen.lineTo(...view.toPixel(...corner));
    if (!hand.isDrawing) pen.closePath();
    pen.stroke();
  }

  /** Show what the page marks, if it means this map. */
  function takeMarks(told) {
    if (!points || told?.layout !== points.layout) return;
    Object.assign(marks, { at: told.at, lasso: told.lasso });
    if (shown) paintMarks();
  }

  function paintAxes(pen) {
    pen.font = `11px ${theme.font}`;
    Object.assign(pen, { fillStyle: theme.text, strokeStyle: theme.background });
    Object.assign(pen, { lineWidth: 4, lineJoin: "round" });
    const write = (text, x, y) => (pen.strokeText(text, x, y), pen.fillText(text, x, y)); // over points
    const axis = ({ name, ticks }, isX) => {
      pen.globalAlpha = 0.12;
      for (const [at] of ticks) {
        const [x, y] = view.toPixel(at, at);
        if (isX) pen.fillRect(Math.round(x), 0, 1, view.height);
        else pen.fillRect(0, Math.round(y), view.width, 1);
      }
      pen.globalAlpha = 0.85;
      for (const [at, text] of ticks) {
        const [x, y] = view.toPixel(at, at);
        write(text, isX ? x + 3 : 4, isX ? view.height - 5 : y - 3);
      }
      const wide = pen.measureText(name).width;
      if (isX) write(name, view.width - wide - 8, view.height - 20);
      else write(name, 36, 14);
    };
    axis(points.axes.x, true);
    axis(points.axes.y, false);
    pen.globalAlpha = 1;
  }

  function nearest([x, y]) {
    let best = -1;
    let least = (REACH / view.scale) ** 2;
    for (let at = 0; at < points.n; at++) {
      const distance = (points.x[at] - x) ** 2 + (points.y[at] - y) ** 2;
      if (distance < least) [best, least] = [at, distance];
    }
    return best;
  }

  const hand = createHand(overlay, view, {
    moved: () => soon(paint),
    hovered(place) {
      const at = nearest(place);
      overlay.style.cursor = at < 0 ? "" : "pointer";
      if (at !== marks.hovered) soon(paintMarks);
      marks.hovered = at;
    },
    clicked(place) {
      const at = nearest(place);
      if (at < 0) return;
      marks.at = at;
      paintMarks();
      map.send("picked", at);
    },
    drawn(corners, isDone) {
      marks.lasso = corners;
      paintMarks();
      if (isDone) map.send("lasso", thin(corners));
    },
  });

  const modes = ["move", "lasso"];
  for (const mode of modes)
    part(mode).onclick = () => {
      hand.mode = mode;
      for (const one of modes) part(one).setAttribute("aria-pressed", one === mode);
    };
  part("whole").onclick = () => points && (view.reset(), paint());

  const resized = new ResizeObserver(([{ contentRect }]) => {
    // Asking the frame itself would have the whole page laid out at once.
    const isSame = contentRect.width === view.width && contentRect.height === view.height;
    view.resize(contentRect);
    if (!points) return;
    SIZES[points.layout] = { width: view.width, height: view.height };
    if (!shown) colour();
    else if (!isSame) paint();
  });
  resized.observe(frame);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const themed = () => setTimeout(() => points && colour(), 100); // once the page has its colours
  dark.addEventListener("change", themed);
  const marked = (event) => takeMarks(event.detail);
  window.addEventListener("plain-map-marks", marked);
  window.addEventListener("plain-map-places", place);

  function destroy() {
    resized.disconnect();
    dark.removeEventListener("change", themed);
    window.removeEventListener("plain-map-marks", marked);
    window.removeEventListener("plain-map-places", place);
    painter?.destroy();
    maps.delete(root);
  }
  return map;
}

/** Which part of the map is seen: its centre, and how many pixels a unit has. */
function createView() {
  let [x, y, zoom] = [0, 0, 1];
  return {
    width: 0,
    height: 0,
    resize({ width, height }) {
      [this.width, this.height] = [width, height];
    },
    get ratio() {
      return Math.min(window.devicePixelRatio || 1, 2);
    },
    get scale() {
      return (zoom * Math.min(this.width, this.height)) / 2.1;
    },
    get centre() {
      return [x, y];
    },
    get zoom() {
      return zoom;
    },
    toPixel(mapX, mapY) {
      return [this.width / 2 + (mapX - x) * this.scale, this.height / 2 - (mapY - y) * this.scale];
    },
    toMap(pixelX, pixelY) {
      return [x + (pixelX - this.width / 2) / this.scale, y - (pixelY - this.height / 2) / this.scale];
    },
    fit(...canvases) {
      for (const one of canvases) {
        const [width, height] = [this.width * this.ratio, this.height * this.ratio].map(Math.round);
        if (one.width !== width || one.height !== height) [one.width, one.height] = [width, height];
      }
    },
    move(pixelX, pixelY) {
      [x, y] = [x - pixelX / this.scale, y + pixelY / this.scale];
    },
    zoomAt(factor, pixelX, pixelY) {
      const [mapX, mapY] = this.toMap(pixelX, pixelY);
      const wanted = Math.min(Math.max(zoom * factor, 0.5), 200);
      const part = zoom / wanted;
      [x, y, zoom] = [mapX + (x - mapX) * part, mapY + (y - mapY) * part, wanted];
    },
    reset() {
      [x, y, zoom] = [0, 0, 1];
    },
  };
}

/** What mouse, pen, finger and keys do: move, zoom, click, lasso. */
function createHand(surface, view, { moved, hovered, clicked, drawn }) {
  const hand = { mode: "move", isDrawing: false };
  let from = null;
  let path = [];
  const at = (event) => [event.offsetX, event.offsetY];
  surface.onpointerdown = (event) => {
    if (event.button) return;
    surface.setPointerCapture(event.pointerId);
    from = { start: at(event), last: at(event), far: false };
    hand.isDrawing = hand.mode === "lasso" || event.shiftKey;
    path = [];
  };
  surface.onpointermove = (event) => {
    const place = at(event);
    if (!from) return hovered(view.toMap(...place));
    from.far ||= Math.hypot(place[0] - from.start[0], place[1] - from.start[1]) > 4;
    if (hand.isDrawing) drawn((path = [...path, view.toMap(...place)]), false);
    else if (from.far) {
      view.move(place[0] - from.last[0], place[1] - from.last[1]);
      moved();
    }
    from.last = place;
  };
  surface.onpointerup = (event) => {
    const was = from;
    from = null;
    const isLasso = hand.isDrawing && was?.far && path.length > 2;
    hand.isDrawing = false;
    if (isLasso) drawn(path, true);
    else if (was && !was.far) clicked(view.toMap(...at(event)));
  };
  surface.onpointercancel = () => ((from = null), (hand.isDrawing = false));
  surface.onpointerleave = () => hovered([Infinity, Infinity]);
  surface.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      view.zoomAt(Math.exp(-event.deltaY / 400), ...at(event));
      moved();
    },
    { passive: false },
  );
  const pan = 40;
  const keys = {
    ArrowLeft: () => view.move(pan, 0),
    ArrowRight: () => view.move(-pan, 0),
    ArrowUp: () => view.move(0, pan),
    ArrowDown: () => view.move(0, -pan),
    "+": () => view.zoomAt(1.3, view.width / 2, view.height / 2),
    "-": () => view.zoomAt(1 / 1.3, view.width / 2, view.height / 2),
    0: () => view.reset(),
  };
  surface.onkeydown = (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
    moved();
  };
  return hand;
}

function createPainter(canvas, few, note) {
  const gl = few ? null : canvas.getContext("webgl", { antialias: false, alpha: false });
  if (gl) return webglPainter(gl);
  if (!few) note.textContent = "Without WebGL, so slower · wheel to zoom · Shift and drag to lasso";
  return pixelPainter(canvas);
}

const pointSize = ({ n }, zoom) => (n > 50000 ? 2.5 : n > 10000 ? 3.5 : 6) * zoom ** 0.25;
const OPACITY = 0.85;

const VERTEX = `
attribute vec2 place;
attribute vec4 ink;
uniform vec2 centre, reach;
uniform mediump float size;
varying vec4 colour;
void main() {
  gl_Position = vec4((place - centre) * reach, 0.0, 1.0);
  gl_PointSize = size;
  colour = ink;
}`;
const FRAGMENT = `
precision mediump float;
uniform mediump float size;
varying vec4 colour;
void main() {
  float inside = (0.5 - length(gl_PointCoord - 0.5)) * size;
  if (inside <= 0.0) discard;
  gl_FragColor = vec4(colour.rgb, colour.a * min(inside, 1.0));
}`;

function webglPainter(gl) {
  const program = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  gl.useProgram(program);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  const uniform = (name) => gl.getUniformLocation(program, name);
  const fill = (buffer, name, array, count, kind, normalized) => {
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, array, gl.STATIC_DRAW);
    const at = gl.getAttribLocation(program, name);
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, count, kind, normalized, 0, 0);
  };
  const [places, inks] = [gl.createBuffer(), gl.createBuffer()];
  let points = null;
  return {
    load(next, colours, theme) {
      points = next;
      const order = drawingOrder(points);
      const place = new Float32Array(2 * points.n);
      const ink = new Uint32Array(points.n);
      const inked = colours.map((one) => word([...rgb(one), Math.round(255 * OPACITY)]));
      for (let to = 0; to < points.n; to++) {
        const at = order[to];
        place[2 * to] = points.x[at];
        place[2 * to + 1] = points.y[at];
        ink[to] = inked[points.value[at]];
      }
      fill(places, "place", place, 2, gl.FLOAT, false);
      fill(inks, "ink", new Uint8Array(ink.buffer), 4, gl.UNSIGNED_BYTE, true);
      gl.clearColor(...rgb(theme.background).map((one) => one / 255), 1);
    },
    paint(view) {
      const reach = [(2 * view.scale) / view.width, (2 * view.scale) / view.height];
      gl.viewport(0, 0, gl.drawingBufferWidth, gl.drawingBufferHeight);
      gl.uniform2f(uniform("centre"), ...view.centre);
      gl.uniform2f(uniform("reach"), ...reach);
      gl.uniform1f(uniform("size"), pointSize(points, view.zoom) * view.ratio);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.drawArrays(gl.POINTS, 0, points.n);
    },
    destroy: () => gl.getExtension("WEBGL_lose_context")?.loseContext(),
  };
}

const word = (bytes) => new Uint32Array(new Uint8Array(bytes).buffer)[0];

/** Instances without a value lie under the others. */
function drawingOrder({ n, value, classes }) {
  const order = new Uint32Array(n);
  let [low, high] = [0, n];
  for (let at = n - 1; at >= 0; at--) if (value[at] !== classes) order[--high] = at;
  for (let at = 0; at < n; at++) if (value[at] === classes) order[low++] = at;
  return order;
}

/** Draws what the shaders draw. */
function pixelPainter(canvas) {
  const pen = canvas.getContext("2d", { alpha: false });
  let [points, order, inks, ground] = [];
  return {
    load(next, colours, theme) {
      [points, order] = [next, drawingOrder(next)];
      [inks, ground] = [colours.map(rgb), word([...rgb(theme.background), 255])];
    },
    paint(view) {
      const { width, height } = canvas;
      const image = new ImageData(width, height);
      new Uint32Array(image.data.buffer).fill(ground);
      const radius = (pointSize(points, view.zoom) * view.ratio) / 2;
      const scale = view.scale * view.ratio;
      const [left, top] = view.toPixel(0, 0).map((one) => one * view.ratio);
      for (const at of order) {
        const [x, y] = [left + points.x[at] * scale, top - points.y[at] * scale];
        if (x > -radius && y > -radius && x < width + radius && y < height + radius)
          dot(image, x, y, radius, inks[points.value[at]]);
      }
      pen.putImageData(image, 0, 0);
    },
    destroy() {},
  };
}

/** Lay a disc with a smooth edge over the pixels; their centres lie between whole numbers. */
function dot({ data, width, height }, x, y, radius, [red, green, blue]) {
  const [first, last] = [Math.max(0, Math.floor(x - radius)), Math.min(width, Math.ceil(x + radius))];
  const bottom = Math.min(height, Math.ceil(y + radius));
  for (let row = Math.max(0, Math.floor(y - radius)); row < bottom; row++)
    for (let column = first; column < last; column++) {
      const inside = radius - Math.sqrt((column + 0.5 - x) ** 2 + (row + 0.5 - y) ** 2);
      if (inside <= 0) continue;
      const part = OPACITY * Math.min(inside, 1);
      const to = 4 * (row * width + column);
      data[to] += (red - data[to]) * part;
      data[to + 1] += (green - data[to + 1]) * part;
      data[to + 2] += (blue - data[to + 2]) * part;
    }
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
    font: read("font", "sans-serif"),
    names: read("chart-categorical-colors", "").split(/,(?![^(]*\))/).filter(Boolean).map(hex),
  };
  theme.key = [theme.background, theme.text, theme.primary, ...theme.names].join();
  return theme;
}

const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

function rgb(colour) {
  if (/^#[0-9a-f]{6}$/i.test(colour)) return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
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
