// Draws a question: one instance with its candidates in rows, or one label of many instances in a grid.
/** @import { Cell, Item } from "./types" */
import { button, make, percent, sparkline } from "../elements.js";
import { showPicture, thumbnail } from "./picture.js";

const VERDICTS = ["keep", "reject", "unsure"];
const MARKS = { keep: "✓", reject: "✗", unsure: "?" };

/** @param {Item} item */
export function drawItem(view, item) {
  view.part("one").hidden = view.isGrid;
  view.part("grid").hidden = !view.isGrid;
  if (view.isGrid) view.part("grid").replaceChildren(...item.cells.map((cell, at) => tile(view, cell, at)));
  else drawOne(view, item);
}

/** @param {Item} item */
function drawOne(view, item) {
  const { part } = view;
  showPicture(part("picture"), item);
  part("texts").replaceChildren(...item.texts.flatMap(([name, text]) => [make("dt", "", name), make("dd", "", text)]));
  part("near").replaceChildren(...item.near.map(neighbour));
  part("near").classList.toggle("words", !item.near.some((one) => one.picture));
  part("nearby").hidden = !item.near.length;
  part("rows").replaceChildren(...item.cells.map((cell, at) => row(view, cell, at, view.queue.isHidden(item))));
  part("rows").children[view.queue.mark]?.scrollIntoView({ block: "nearest" });
}

/** @param {Item["near"][number]} near */
function neighbour({ title, picture, text }) {
  const box = make("figure");
  if (picture) box.append(thumbnail(picture));
  box.append(make("figcaption", "", text || title));
  box.title = [title, text].filter(Boolean).join("\n");
  return box;
}

/** @param {Cell} cell */
function row(view, cell, at, isHidden) {
  const row = make("div", "row");
  row.dataset.verdict = cell.verdict ?? "";
  row.classList.toggle("marked", at === view.queue.mark);
  row.classList.toggle("aside", !cell.asked && !cell.isTouched && !cell.decided);
  row.onmousedown = () => view.change(() => (view.queue.mark = at));
  const bar = make("span", "bar");
  if (!isHidden) bar.style.setProperty("--share", String(cell.confidence ?? 0));
  const name = make("span", "label", cell.name);
  name.title = cell.sampled ? `${cell.name} (drawn at random, for the estimates)` : cell.name;
  row.append(
    make("kbd", "", at < 10 ? String((at + 1) % 10) : ""),
    name,
    bar,
    make("span", "number", isHidden ? "·" : percent(cell.confidence)),
    isHidden ? make("span", "spark") : sparkline(cell.history),
    verdictButtons(view, cell, at),
  );
  if (cell.offered) {
    const votes = make("span", "votes", isHidden ? "\u00a0" : cell.offered); // the line stays: nothing jumps
    if (!isHidden) votes.title = cell.offered;
    row.append(votes);
  }
  return row;
}

/** @param {Cell} cell */
function verdictButtons(view, cell, at) {
  const box = make("span", "verdicts");
  for (const verdict of VERDICTS) {
    const one = button(MARKS[verdict], verdict, () => view.change(() => view.set(at, verdict)));
    one.setAttribute("aria-label", `${verdict} ${cell.name}`);
    one.setAttribute("aria-pressed", String(cell.verdict === verdict));
    one.dataset.verdict = verdict;
    box.append(one);
  }
  return box;
}

/** @param {Cell} cell */
function tile(view, cell, at) {
  const { blind } = view.queue.settings;
  const tile = make("div", "tile");
  tile.dataset.verdict = cell.verdict ?? "";
  tile.classList.toggle("marked", at === view.queue.mark);
  tile.onmousedown = (event) => {
    event.preventDefault();
    view.change(() => view.toggle(at));
  };
  if (cell.picture) tile.append(thumbnail(cell.picture));
  tile.append(make("span", "caption", cell.text || cell.id));
  const mark = cell.verdict ? MARKS[cell.verdict] : "–";
  tile.append(make("span", "number", `${mark} ${blind ? "" : percent(cell.confidence)}`));
  tile.title = [cell.id, blind ? "" : cell.offered].filter(Boolean).join("\n");
  return tile;
}
