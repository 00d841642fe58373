// Lines, bars and heat maps on one canvas. They are described as ECharts options, of which this
// understands what `charts` uses for them; a screen with them is there in half the time.

const SMALL = 11; // pixels of text
const WIDTHS = (window.plainPlotWidths ??= {}); // by key: a plot that comes back has its old width

const plots = new WeakMap(); // by box; the default export is called again at every rerun

export default function ({ data, parentElement }) {
  const box = parentElement.querySelector(".plain-plot");
  let plot = plots.get(box);
  if (!plot) plots.set(box, (plot = createPlot(box, data.key)));
  plot.show(data);
  return () => plot.destroy();
}

function createPlot(box, key) {
  const canvas = document.createElement("canvas");
  const tip = Object.assign(document.createElement("div"), { className: "plain-tip", hidden: true });
  const cross = Object.assign(document.createElement("i"), { className: "plain-cross", hidden: true });
  let [told, panels, width, text] = [null, [], WIDTHS[key] ?? 0, ""];

  function draw() {
    if (!told || !width) return;
    const theme = readTheme(box);
    const [ratio, height] = [Math.min(window.devicePixelRatio || 1, 2), told.height];
    [canvas.width, canvas.height] = [width, height].map((one) => Math.round(one * ratio));
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    panels = split(told.option, width, height).map((one) => drawPanel(pen, one, theme));
    if (!canvas.isConnected) box.replaceChildren(canvas, cross, tip);
  }

  function show(data) {
    const now = JSON.stringify(data);
    if (now === text) return;
    [told, text] = [data, now];
    const titles = [data.option.title].flat().map((one) => one.text);
    Object.assign(canvas, { role: "img", ariaLabel: titles.join("; ") });
    hide();
    draw();
  }

  const hide = () => (tip.hidden = cross.hidden = true);

  canvas.onpointerleave = hide;
  canvas.onpointermove = ({ offsetX: x, offsetY: y }) => {
    const panel = panels.find(({ box: b }) => x >= b.x && x <= b.x + b.w && y >= b.y && y <= b.y + b.h);
    const found = panel?.find(x, y);
    if (!found) return hide();
    tip.replaceChildren(...found.lines.map(lineOfTip));
    tip.hidden = false;
    cross.hidden = found.at === undefined;
    if (!cross.hidden)
      Object.assign(cross.style, px({ left: found.at, top: panel.box.y, height: panel.box.h }));
    const left = x + 14 + tip.offsetWidth > width ? x - 14 - tip.offsetWidth : x + 14;
    const top = Math.min(y + 12, told.height - tip.offsetHeight);
    Object.assign(tip.style, px({ left: Math.max(left, 0), top: Math.max(top, 0) }));
  };

  const resized = new ResizeObserver(([{ contentRect }]) => {
    const now = Math.floor(contentRect.width);
    if (!now || (now === width && canvas.isConnected)) return;
    width = WIDTHS[key] = now;
    draw();
  });
  resized.observe(box);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const themed = () => setTimeout(draw, 100); // once the page has its colours
  dark.addEventListener("change", themed);
  return {
    show,
    destroy() {
      resized.disconnect();
      dark.removeEventListener("change", themed);
      plots.delete(box);
    },
  };
}

const px = (values) =>
  Object.fromEntries(Object.entries(values).map(([name, one]) => [name, `${Math.round(one)}px`]));

function lineOfTip([ink, name, value]) {
  const line = document.createElement("div");
  const dot = Object.assign(document.createElement("i"), { hidden: !ink });
  dot.style.background = ink ?? "";
  const [left, right] = [document.createElement("span"), document.createElement("b")];
  [left.textContent, right.textContent] = [name, value]; // names are data: never markup
  line.append(dot, left, right);
  return line;
}

/** The charts of an option, each with its own title, legend, axes, series and place. */
function split(option, width, height) {
  const all = (name) => [option[name] ?? []].flat();
  const [legends, grids] = [all("legend"), all("grid")];
  return grids.map((grid, at) => {
    const series = all("series").filter((one) => (one.xAxisIndex ?? 0) === at);
    const names = new Set(series.map((one) => one.name));
    return {
      series,
      grid: place(grid, width, height),
      title: all("title")[at],
      legend: legends.length === grids.length ? legends[at] : legends.find(({ data }) => data.every((one) => names.has(one))),
      x: all("xAxis")[at],
      y: all("yAxis")[at],
      scale: all("visualMap").find(({ seriesIndex: of }) => !of || series.includes(all("series")[of[0]])),
      width,
    };
  });
}

function place(grid, width, height) {
  const length = (value, whole) => (typeof value === "string" ? (parseFloat(value) / 100) * whole : value);
  const x = length(grid.left, width);
  const w = grid.width ? length(grid.width, width) : width - x - length(grid.right, width);
  const y = length(grid.top, height);
  return { x, y, w, h: grid.height ?? height - y - grid.bottom };
}

function drawPanel(pen, panel, theme) {
  const { series, title, legend, x, y, scale, width } = panel;
  const left = (one) => (typeof one.left === "string" ? (parseFloat(one.left) / 100) * width : one.left);
  const write = writer(pen, theme);
  if (title) write(title.text, left(title), title.top + 7, { size: 13, weight: 600, alpha: 1 });
  const inks = series.map((one, at) => one.itemStyle?.color ?? theme.names[at % theme.names.length]);
  const grid = { ...panel.grid };
  if (legend) {
    const below = drawLegend(pen, write, legend.data, inks, { ...grid, x: left(legend), y: legend.top + 6 });
    const lower = Math.max(below + 12 - grid.y, 0); // a legend of several lines has its room
    [grid.y, grid.h] = [grid.y + lower, grid.h - lower];
  }
  // The labels are inside the grid; those of y tell how wide they are once its ticks are known.
  const foot = x.axisLabel.rotate ? 9 + Math.min(longest(write, x.data), 0.4 * grid.h) * 0.71 : 19;
  const box = { x: grid.x, y: grid.y, w: grid.w, h: grid.h - foot };
  const down = createAxis(y, series, 1, box.h);
  for (const one of down.ticks) one.text = fitting(write, one.text, 0.4 * grid.w);
  const beside = Math.ceil(longest(write, down.ticks.map((one) => one.text))) + 8;
  [box.x, box.w] = [box.x + beside, box.w - beside];
  const across = createAxis(x, series, 0, box.w);
  if (x.axisLabel.rotate)
    for (const one of across.ticks) one.text = fitting(write, one.text, 0.4 * grid.h);
  const toX = (value) => box.x + across.at(value);
  const toY = (value) => (y.inverse ? box.y + down.at(value) : box.y + box.h - down.at(value));
  drawAxes(pen, write, { box, across, down, toX, toY, x, y, theme });
  const chart = { series, inks, box, across, down, toX, toY, x, y, scale, theme };
  const find = drawSeries(pen, chart);
  for (const { markLine } of series) drawMark(pen, markLine, chart);
  if (scale) drawScale(pen, write, scale, theme, grid, width);
  return { box, find };
}

/** Draw series, bars before lines; return what a pointer over them means. */
function drawSeries(pen, chart) {
  const kinds = { heatmap: drawHeat, bar: drawBars, line: drawLines };
  const found = Object.keys(kinds).flatMap((kind) => {
    const own = chart.series.map(({ type }) => type === kind);
    const of = (all) => all.filter((_, at) => own[at]);
    const part = { ...chart, series: of(chart.series), inks: of(chart.inks) };
    return part.series.length ? [kinds[kind](pen, part)] : [];
  });
  return found.length > 1 ? nearestInX(chart) : (found[0] ?? (() => null));
}

/** A line across the chart, where a setting stands. */
function drawMark(pen, markLine, { box, toX }) {
  for (const { xAxis } of markLine?.data ?? []) {
    pen.fillStyle = markLine.lineStyle.color;
    pen.fillRect(Math.round(toX(xAxis)), box.y, 1, box.h);
  }
}

function writer(pen, theme) {
  const write = (text, x, y, { align = "left", size, weight, alpha = 0.72, turn = 0 } = {}) => {
    pen.save();
    write.font(size, weight);
    Object.assign(pen, { globalAlpha: alpha, fillStyle: theme.text });
    Object.assign(pen, { textAlign: align, textBaseline: "middle" });
    pen.translate(x, y);
    pen.rotate(turn);
    pen.fillText(text, 0, 0);
    pen.restore();
  };
  write.font = (size = SMALL, weight = 400) => (pen.font = `${weight} ${size}px ${theme.font}`);
  write.width = (text) => (write.font(), pen.measureText(text).width);
  return write;
}

function fitting(write, text, room) {
  if (write.width(text) <= room) return text;
  let end = text.length;
  while (end > 1 && write.width(text.slice(0, end) + "…") > room) end--;
  return text.slice(0, end) + "…";
}

const longest = (write, texts) => texts.reduce((most, one) => Math.max(most, write.width(one)), 0);

function drawLegend(pen, write, names, inks, { x: left, y, w }) {
  let x = left;
  names.forEach((name, at) => {
    const wide = write.width(name) + 22;
    if (x + wide > left + w + 10) [x, y] = [left, y + 13];
    pen.fillStyle = inks[at];
    pen.fillRect(x, y - 3, 10, 6);
    write(name, x + 14, y);
    x += wide;
  });
  return y;
}

/** An axis of categories or of numbers: where a value stands, and its ticks. */
function createAxis(axis, series, side, length) {
  if (axis.type === "category") {
    const isToEdge = axis.boundaryGap === false;
    const band = length / Math.max(axis.data.length - isToEdge, 1);
    const places = new Map(axis.data.map((name, at) => [name, at]));
    const begin = isToEdge ? 0 : 0.5;
    const at = (value) => ((typeof value === "number" ? value : places.get(value)) + begin) * band;
    return { at, band, ticks: axis.data.map((text, i) => ({ text, value: i })), isNames: true };
  }
  const values = series.flatMap(({ data }) => data.map((one) => (Array.isArray(one) ? one[side] : one)));
  const known = values.filter((one) => Number.isFinite(one));
  const hasBars = series.some((one) => one.type === "bar");
  const base = hasBars && !axis.scale ? [0] : [];
  const [least, most] = [Math.min(...known, ...base), Math.max(...known, ...base)];
  const [low, high] = [axis.min ?? (known.length ? least : 0), axis.max ?? (known.length ? most : 1)];
  const spread = high - low || Math.abs(high) || 1;
  const step = niceStep(spread / (axis.splitNumber ?? 5), axis.minInterval ?? 0);
  const from = axis.min ?? Math.floor(low / step + 1e-9) * step;
  const to = Math.max(axis.max ?? Math.ceil(high / step - 1e-9) * step, from + step * 1e-6);
  const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  const ticks = [];
  for (let at = Math.ceil(from / step - 1e-9); at * step <= to + step * 1e-9; at++)
    ticks.push({ value: at * step, text: fixed(at * step || 0, digits) });
  return { at: (value) => ((value - from) / (to - from)) * length, ticks, isNames: false };
}

const fixed = (value, digits) =>
  value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

function niceStep(rough, least) {
  const wanted = Math.max(rough, least);
  const power = 10 ** Math.floor(Math.log10(wanted));
  const part = wanted / power;
  return power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
}

function drawAxes(pen, write, { box, across, down, toX, toY, x, y, theme }) {
  pen.fillStyle = theme.text;
  pen.globalAlpha = 0.1;
  if (!down.isNames)
    for (const { value } of down.ticks) pen.fillRect(box.x, Math.round(toY(value)), box.w, 1);
  if (down.isNames && !across.isNames)
    for (const { value } of across.ticks) pen.fillRect(Math.round(toX(value)), box.y, 1, box.h);
  pen.globalAlpha = 0.45;
  pen.fillRect(box.x, box.y + box.h, box.w, 1);
  if (down.isNames) pen.fillRect(box.x, box.y, 1, box.h);
  pen.globalAlpha = 1;
  const turn = x.axisLabel.rotate ? -Math.PI / 4 : 0;
  const room = turn ? 14 : longest(write, across.ticks.map((one) => one.text)) + 8;
  for (const { value, text } of apart(across, room))
    if (turn) write(text, toX(value) + 3, box.y + box.h + 9, { align: "right", turn });
    else write(text, toX(value), box.y + box.h + 11, { align: "center" });
  for (const { value, text } of apart(down, y.axisLabel.interval === 0 ? 0 : 14))
    write(text, box.x - 6, toY(value), { align: "right" });
  if (x.name) write(x.name, box.x + box.w / 2, box.y + box.h + x.nameGap, { align: "center" });
  const up = { align: "center", turn: -Math.PI / 2 };
  if (y.name) write(y.name, box.x - y.nameGap, box.y + box.h / 2, up);
}

/** The ticks with as much room between them. */
function apart(axis, room) {
  const [first, second] = axis.ticks.map(({ value }) => axis.at(value));
  const step = second === undefined ? 1 : Math.max(1, Math.ceil(room / Math.max(second - first, 1e-6)));
  return axis.ticks.filter((_, at) => at % step === 0);
}

const exact = (value) => (value === null ? "–" : value.toLocaleString("en", { maximumSignificantDigits: 5 }));

function drawLines(pen, { series, inks, toX, toY, box, x }) {
  pen.save();
  pen.beginPath();
  pen.rect(box.x - 2, box.y - 2, box.w + 4, box.h + 4);
  pen.clip();
  series.forEach(({ data, showSymbol, step }, at) => {
    Object.assign(pen, { strokeStyle: inks[at], fillStyle: inks[at], lineWidth: 1.8, lineJoin: "round" });
    pen.beginPath();
    let isOn = false;
    for (const [epoch, value] of step ? stairs(data) : data) {
      if (value !== null) isOn ? pen.lineTo(toX(epoch), toY(value)) : pen.moveTo(toX(epoch), toY(value));
      isOn = value !== null;
      if (isOn && showSymbol) pen.fillRect(toX(epoch) - 2, toY(value) - 2, 4, 4);
    }
    pen.stroke();
  });
  pen.restore();
  return nearestInX({ series, inks, toX, x });
}

/** Points half-way to the neighbours of each: a line through them has a step per point. */
function stairs(data) {
  const half = data.length > 1 ? (data[1][0] - data[0][0]) / 2 : 0;
  return data.flatMap(([place, value]) => [[place - half, value], [place + half, value]]);
}

/** What a pointer means among points along x: those nearest to it, of all series. */
function nearestInX({ series, inks, toX, x }) {
  const places = series[0].data.map(([place]) => place);
  return (pointer) => {
    if (!places.length) return null;
    const away = places.map((place) => Math.abs(toX(place) - pointer));
    const at = away.indexOf(Math.min(...away));
    const rows = series.map(({ name, data }, i) => [inks[i], name, exact(data[at][1])]);
    const place = x.data?.[places[at]] ?? places[at];
    return { at: toX(places[at]), lines: [[null, `${x.name} ${place}`, ""], ...rows] };
  };
}

function drawBars(pen, { series, inks, box, across, down, toX, toY, x, y }) {
  if (!across.isNames && !down.isNames) {
    series.forEach((one, i) => drawAlong(pen, one, inks[i], { toX, toY }));
    return nearestInX({ series, inks, toX, x });
  }
  // Bars of one name share its band, side by side; those of a stack go both ways from zero.
  const band = (down.isNames ? down : across).band * (1 - parseFloat(series[0].barCategoryGap ?? "20") / 100);
  const isStack = Boolean(series[0].stack);
  const thick = Math.max(1, isStack ? band : band / series.length);
  series.forEach(({ data }, i) => {
    pen.fillStyle = inks[i];
    const begin = isStack ? -thick / 2 : (i - series.length / 2) * thick;
    data.forEach((value, at) => {
      if (down.isNames) pen.fillRect(toX(0), toY(at) + begin, toX(value) - toX(0), thick);
      else pen.fillRect(toX(at) + begin, toY(value), thick, toY(0) - toY(value));
    });
  });
  return (left, top) => {
    const away = down.isNames ? (y.inverse ? top - box.y : box.y + box.h - top) : left - box.x;
    const at = Math.floor(away / (down.isNames ? down : across).band);
    if (!(at in series[0].data)) return null;
    const name = down.isNames ? y.data[at] : `${x.data[at]} ${x.name}`;
    const values = series.map(({ data, name: what }, i) => [inks[i], what, exact(data[at])]);
    if (series.length > 1) return { lines: [[null, name, ""], ...values] };
    return { lines: [[inks[0], name, `${values[0][2]} ${series[0].name}`]] };
  };
}

/** Bars at numbers: slim ones, or as wide as their distance where a width is given. */
function drawAlong(pen, { data, barWidth, barMaxWidth }, ink, { toX, toY }) {
  const apart = data.length > 1 ? toX(data[1][0]) - toX(data[0][0]) : toX(1) - toX(0);
  const wanted = barWidth ? (parseFloat(barWidth) / 100) * apart : Math.min(barMaxWidth ?? 8, 0.7 * apart);
  const [thick, foot] = [Math.max(1, wanted), toY(0)];
  pen.fillStyle = ink;
  for (const [at, value] of data) pen.fillRect(toX(at) - thick / 2, toY(value), thick, foot - toY(value));
}

function drawHeat(pen, { series: [one], box, across, down, toX, toY, x, y, scale, theme }) {
  const ink = shades(scale, theme);
  const values = new Map();
  for (const [column, row, value] of one.data) {
    pen.fillStyle = ink(value);
    const [left, top] = [toX(column) - across.band / 2, toY(row) - down.band / 2];
    pen.fillRect(Math.floor(left), Math.floor(top), Math.ceil(across.band), Math.ceil(down.band));
    values.set(`${column}\n${row}`, value);
  }
  const unit = one.name ?? "";
  return (pointerX, pointerY) => {
    const column = x.data[Math.floor((pointerX - box.x) / across.band)];
    const row = y.data[Math.floor((y.inverse ? pointerY - box.y : box.y + box.h - pointerY) / down.band)];
    const value = values.get(`${column}\n${row}`);
    if (value === undefined) return null;
    const names = [[x.name, column], [y.name, row]].map(([name, one]) => (name ? `${name} ${one}` : one));
    return { lines: [[null, names.join(" · "), ""], [ink(value), unit, exact(value)]] };
  };
}

function shades({ min, max }, theme) {
  const parts = theme.shades.map((one) => [1, 3, 5].map((at) => parseInt(one.slice(at, at + 2), 16)));
  return (value) => {
    const at = (parts.length - 1) * Math.min(Math.max((value - min) / (max - min), 0), 1);
    const [low, high] = [parts[Math.floor(at)], parts[Math.ceil(at)]];
    return `rgb(${low.map((one, i) => Math.round(one + (high[i] - one) * (at % 1))).join()})`;
  };
}

function drawScale(pen, write, scale, theme, grid, width) {
  const right = typeof scale.right === "string" ? (parseFloat(scale.right) / 100) * width : scale.right;
  const [x, y] = [width - right - 24, grid.y + (grid.h - scale.itemHeight) / 2];
  const ramp = pen.createLinearGradient(0, y + scale.itemHeight, 0, y);
  theme.shades.forEach((ink, at) => ramp.addColorStop(at / (theme.shades.length - 1), ink));
  pen.fillStyle = ramp;
  pen.fillRect(x, y, scale.itemWidth, scale.itemHeight);
  const [high, low] = scale.text;
  write(high, x + scale.itemWidth / 2, y - 9, { align: "center" });
  write(low, x + scale.itemWidth / 2, y + scale.itemHeight + 9, { align: "center" });
}

function readTheme(element) {
  const style = getComputedStyle(element);
  const read = (name) => style.getPropertyValue(`--st-${name}`).trim();
  const list = (name) => read(name).split(/,(?![^(]*\))/).map((one) => one.trim()).filter(Boolean);
  return {
    text: read("text-color") || "#222222",
    font: read("font") || "sans-serif",
    names: list("chart-categorical-colors"),
    shades: list("chart-sequential-colors"),
  };
}
