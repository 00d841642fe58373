// A short table. Cells are data: drawn as text, never as markup.

const drawn = new WeakMap(); // what a root shows; the default export is called at every rerun

export default function ({ data, parentElement, setTriggerValue }) {
  const box = parentElement.querySelector('[data-part="rows"]');
  const { marked, height, ...content } = data;
  const now = JSON.stringify(content);
  let shown = drawn.get(box);
  if (shown?.now !== now) {
    drawn.set(box, (shown = { now }));
    const tell = { pick: (at) => shown.send("picked", at), mark: () => shown.send("marked", marks(box)) };
    box.replaceChildren(table(content, tell));
  }
  shown.send = setTriggerValue;
  box.style.maxHeight = `${height}px`;
  checks(box).forEach((one, at) => (one.checked = marked.includes(at)));
}

const checks = (box) => [...box.querySelectorAll("input")];
const marks = (box) => checks(box).flatMap((one, at) => (one.checked ? [at] : []));

function make(tag, kind = "", text = "") {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  if (text) element.textContent = text;
  return element;
}

function table({ columns, rows, can_pick, can_mark }, { pick, mark }) {
  const whole = make("table");
  const head = make("tr");
  if (can_mark) head.append(make("th"));
  for (const { name, kind } of columns) head.append(make("th", kind, name));
  whole.append(head);
  rows.forEach((cells, at) => {
    const row = make("tr");
    if (can_mark) row.append(marker(cells[0], mark));
    columns.forEach(({ kind }, place) => row.append(cell(kind, cells[place])));
    if (can_pick) makePickable(row, () => pick(at));
    whole.append(row);
  });
  return whole;
}

function marker(name, mark) {
  const [box, check] = [make("td", "check"), make("input")];
  check.type = "checkbox";
  check.ariaLabel = `Mark ${name}`;
  check.onchange = mark;
  box.append(check);
  return box;
}

function makePickable(row, pick) {
  row.classList.add("pickable");
  row.tabIndex = 0;
  row.onclick = pick;
  row.onkeydown = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    pick();
  };
}

const draw = {
  text: (box, value) => (box.textContent = box.title = value),
  number: (box, value) => (box.textContent = value),
  check: (box, value) => (box.textContent = value ? "✓" : ""),
  bar(box, value) {
    if (value === null) return;
    const [track, fill] = [make("i", "track"), make("i", "fill")];
    fill.style.width = `${100 * Math.min(Math.max(value, 0), 1)}%`;
    track.append(fill);
    box.append(track, make("span", "", value.toFixed(2)));
  },
  span(box, [start, end, zero, colour]) {
    const [track, fill, line] = [make("i", "track"), make("i", "fill"), make("i", "zero")];
    Object.assign(fill.style, { left: `${100 * start}%`, width: `${100 * (end - start)}%`, background: colour });
    line.style.left = `${100 * zero}%`;
    track.append(fill, line);
    box.append(track);
  },
  curve: (box, values) => box.append(curve(values)),
  picture(box, value) {
    if (!value?.startsWith("data:image/")) return;
    const picture = make("img");
    picture.src = value;
    picture.alt = "";
    box.append(picture);
  },
};

function cell(kind, value) {
  const box = make("td", kind);
  draw[kind](box, value);
  return box;
}

function curve(values) {
  const [width, height] = [64, 16];
  const space = "http://www.w3.org/2000/svg";
  const picture = document.createElementNS(space, "svg");
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const line = document.createElementNS(space, "polyline");
  const step = width / Math.max(values.length - 1, 1);
  const corner = (value, at) => `${(at * step).toFixed(1)},${((1 - value) * (height - 2) + 1).toFixed(1)}`;
  line.setAttribute("points", values.map(corner).join(" "));
  picture.append(line);
  return picture;
}
