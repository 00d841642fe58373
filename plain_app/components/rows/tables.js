// Tables below each other. Cells are data: drawn as text, never as markup.

const AT_ONCE = 40; // rows; the others come when the browser has nothing else to do

/** Elements of tables and their notes; `pick` is told the table and the row. */
function tables({ tables, height, ...more }, { pick, mark }) {
  return tables.flatMap((one, of) => {
    const frame = make("div", "rows");
    frame.style.maxHeight = `${height}px`;
    frame.append(table({ ...more, ...one }, { pick: (at) => pick([of, at]), mark }));
    return one.note ? [frame, note(one.note)] : [frame];
  });
}

function note([begin, middle, end]) {
  const line = make("p", "note");
  line.append(begin, make("strong", "", middle), end);
  return line;
}

function make(tag, kind = "", text = "") {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  if (text) element.textContent = text;
  return element;
}

function table({ columns, rows, can_pick, can_mark, can_sort }, { pick, mark }) {
  const whole = make("table");
  const head = make("tr");
  if (can_mark) head.append(make("th"));
  const titles = columns.map(({ name, kind }) => make("th", kind, name));
  head.append(...titles);
  const lines = [];
  const line = (at) => (lines[at] ??= createLine(at));
  const createLine = (at) => {
    const row = make("tr");
    if (can_mark) row.append(marker(rows[at][0], at, mark));
    columns.forEach(({ kind }, place) => row.append(cell(kind, rows[at][place])));
    if (can_pick) makePickable(row, () => pick(at));
    return row;
  };
  let order = [...rows.keys()];
  const drawFrom = (from, count, of = order) => {
    if (of !== order) return; // sorted meanwhile
    whole.append(...of.slice(from, from + count).map(line));
    if (from + count < of.length) requestIdleCallback(() => drawFrom(from + count, AT_ONCE, of), { timeout: 500 });
  };
  whole.append(head);
  drawFrom(0, can_mark ? rows.length : AT_ONCE);
  if (!rows.length) whole.append(nothing(columns.length));
  if (can_sort)
    titles.forEach((title, place) => {
      if (!columns[place].name) return;
      makeSortable(title, titles, (way) => {
        order = sorted(rows, place, way);
        drawFrom(0, rows.length);
      });
    });
  return whole;
}

function nothing(width) {
  const [row, box] = [make("tr"), make("td", "text", "none")];
  box.colSpan = width;
  box.style.opacity = 0.65;
  row.append(box);
  return row;
}

/** A title that is pressed sorts: up, down, and back to the order that was given. */
function makeSortable(title, titles, sort) {
  title.classList.add("sortable");
  title.tabIndex = 0;
  title.onclick = () => {
    const next = { ascending: "descending", descending: null }[title.ariaSort];
    for (const one of titles) one.ariaSort = null;
    title.ariaSort = next === undefined ? "ascending" : next;
    sort(title.ariaSort);
  };
  title.onkeydown = pressed(title.onclick);
}

function sorted(rows, place, way) {
  if (!way) return [...rows.keys()];
  const sign = way === "ascending" ? 1 : -1;
  const key = (at) => String(rows[at][place] ?? "");
  const number = (text) => (text === "" ? NaN : Number(text.replace(/[,%]/g, "")));
  const order = (a, b) => {
    const [x, y] = [key(a), key(b)];
    const apart = number(x) - number(y);
    return sign * (Number.isNaN(apart) ? x.localeCompare(y, undefined, { numeric: true }) : apart);
  };
  return [...rows.keys()].sort(order);
}

const pressed = (act) => (event) => {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  act();
};

function marker(name, at, mark) {
  const [box, check] = [make("td", "check"), make("input")];
  check.type = "checkbox";
  check.value = at;
  check.ariaLabel = `Mark ${name}`;
  check.onchange = mark;
  box.append(check);
  return box;
}

function makePickable(row, pick) {
  row.classList.add("pickable");
  row.tabIndex = 0;
  row.onclick = pick;
  row.onkeydown = pressed(pick);
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
  link(box, [text, address]) {
    const [link, { pathname, search }] = [make("a", "", text), new URL(address, location.origin)];
    link.href = pathname + search; // of this program, whatever the data says
    link.target = "_blank";
    link.onclick = link.onkeydown = (event) => event.stopPropagation(); // not a pick of the row
    box.append(link);
  },
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
  picture.setAttribute("preserveAspectRatio", "none");
  const line = document.createElementNS(space, "polyline");
  const step = width / Math.max(values.length - 1, 1);
  const corner = (value, at) => `${(at * step).toFixed(1)},${((1 - value) * (height - 2) + 1).toFixed(1)}`;
  line.setAttribute("points", values.map(corner).join(" "));
  picture.append(line);
  return picture;
}
