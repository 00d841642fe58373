// The review desk on the screen: what keys and buttons do, and when it is drawn.
/** @import { DecisionEffect, Trigger } from "./types" */
import { button, make } from "../elements.js";
import { drawItem } from "./item.js";
import * as keyboard from "./keys.js";
import { drawPanel } from "./panels.js";
import { openPicture } from "./picture.js";
import { verdictsOf } from "./queue.js";
import { post } from "./server.js";
import { drawStatus } from "./status.js";

const RENEWAL = 100000; // milliseconds after which what is on the desk is claimed anew
const TICK = 500; // milliseconds
const IDLE = 700; // milliseconds after the last answer was saved: then the page's other parts follow
const NAME = ".st-key-frame-annotator";
const TOOLS = ".st-key-review-tools";
const STEPS = { next: [1, 0], back: [-1, 0], down: [0, 1], up: [0, -1] };

export class View {
  panel = ""; // what is laid over the question: "", "help" or "preview"
  learning = ""; // the action that gets a new key
  note = "";
  wasWaiting = false;
  keys = keyboard.readKeys();
  previewed = /** @type {DecisionEffect | null} */ (null);
  trigger = /** @type {Trigger} */ (() => {});

  constructor(root, outbox, queue) {
    this.host = root.host ?? root;
    this.outbox = /** @type {import("./outbox.js").Outbox} */ (outbox);
    this.queue = /** @type {import("./queue.js").Queue} */ (queue);
    this.part = (name) => root.querySelector(`[data-part="${name}"]`);
    this.draw = this.draw.bind(this);
    this.part("desk").onpointerdown = () => this.part("desk").focus({ preventScroll: true });
    this.part("picture").onclick = () => this.change(() => this.zoom());
    const { signal } = (this.listeners = new AbortController());
    document.addEventListener("keydown", (event) => this.onKey(event), { signal });
    document.addEventListener("keyup", ({ key }) => key === "Escape" && this.takeKeys(TOOLS), { signal });
    outbox.addEventListener("change", () => this.drawStatus(), { signal });
    this.clock = setInterval(() => this.onTick(), TICK);
    this.renewal = setInterval(() => this.queue.item && this.queue.fetchMore(), RENEWAL);
    this.drawButtons();
  }

  show(queue, trigger) {
    this.trigger = trigger;
    if (queue.changed !== this.draw) {
      this.queue.changed = () => {};
      Object.assign(this, { queue, note: "" });
      queue.changed = this.draw;
      if (!queue.item) queue.fetchMore();
      this.takeKeys(`${NAME}, ${TOOLS}`);
    }
    this.draw();
  }

  destroy() {
    this.listeners.abort();
    clearInterval(this.clock);
    clearInterval(this.renewal);
    clearTimeout(this.idle);
    this.queue.changed = () => {};
  }

  /** Whoever has given a name or chosen an order goes on with the desk's keys; an open list keeps them. */
  takeKeys(fields) {
    const { activeElement } = document;
    if (!activeElement?.closest(fields) || activeElement.matches('[aria-expanded="true"]')) return;
    this.part("desk").focus({ preventScroll: true });
  }

  get isGrid() {
    return this.queue.item?.kind === "same";
  }

  // ---- acting

  onTick() {
    keyboard.closeConnectionError();
    if (this.outbox.waiting.length) this.drawStatus();
  }

  onKey(event) {
    if (keyboard.isTaken(event, this.host)) return;
    if (this.learning) return this.takeKey(event);
    const at = this.isGrid ? -1 : keyboard.candidateOf(event.key);
    const name = keyboard.actionOf(this.keys, event.key);
    if (this.part("zoom").open && name !== "zoom") return; // Escape and arrows are the browser's
    if (event.key === "Escape") this.panel = "";
    else if (at >= 0) this.toggle(at);
    else if (name) this.act(name);
    else return;
    event.preventDefault();
    event.stopPropagation();
    this.draw();
  }

  act(name) {
    const { queue } = this;
    this.note = ""; // what was said of the last key
    if (name === "help") this.panel = this.panel === "help" ? "" : "help";
    else if (name === "undo") queue.undo() || (this.note = "Nothing to undo here. Older decisions are listed below.");
    else if (name === "back" && !this.isGrid) queue.goTo(queue.at - 1);
    else if (!queue.item) return;
    else if (name === "next" && !this.isGrid) queue.at + 1 < queue.items.length && queue.goTo(queue.at + 1);
    else if (name in STEPS) this.move(...STEPS[name]);
    else if (name === "accept" || name === "reject") this.answer(name);
    else if (name === "skip") queue.skip();
    else if (name === "toggle") this.toggle(queue.mark);
    else if (["preview", "why", "zoom"].includes(name)) this[name]();
    else this.set(queue.mark, { keep: "keep", drop: "reject", unsure: "unsure" }[name]);
    if (name !== "help" && name !== "preview") this.panel = "";
  }

  move(across, down) {
    const n = this.queue.item?.cells.length ?? 0;
    const columns = () => getComputedStyle(this.part("grid")).gridTemplateColumns.split(" ").length;
    const step = this.isGrid ? across + down * columns() : down;
    this.queue.mark = Math.max(0, Math.min(n - 1, this.queue.mark + step));
  }

  toggle(at) {
    const verdict = this.queue.item?.cells[at]?.verdict;
    if (this.isGrid && verdict === "reject") this.set(at, null);
    else this.set(at, verdict === "keep" ? "reject" : "keep");
  }

  set(at, verdict) {
    const cell = this.queue.item?.cells[at];
    if (!cell) return;
    this.queue.mark = at;
    this.note = "";
    Object.assign(cell, { verdict, isTouched: true });
  }

  /** Do something with this view, and draw what it changed. */
  change(act) {
    act(this);
    this.draw();
  }

  answer(name) {
    const { item } = this.queue;
    const verdicts = item && verdictsOf(name, item.cells, this.isGrid, this.queue.isBlind(item));
    if (verdicts) this.queue.answer(verdicts);
    else this.note = "Blind: tick what is true first, or reject all.";
  }

  /** The marked cell, if it may be explained. */
  get explained() {
    const { item, mark } = this.queue;
    if (!item || !this.queue.isHidden(item)) return item?.cells[mark];
    this.note = "Blind: it is told after the answer.";
    return undefined;
  }

  why() {
    const cell = this.explained;
    if (cell) this.trigger("why", { instance: cell.id, label: cell.label });
  }

  zoom() {
    const { item, mark, settings } = this.queue;
    const { id, picture } = { id: "", picture: item?.picture, ...item?.cells[mark] };
    if (!picture) return void (this.note = "There is no picture here.");
    const load = () => post("picture", settings.token, { instance_id: id });
    const tell = (error) => this.change(() => (this.note = `The large picture did not come: ${error.message}`));
    openPicture(this.part("zoom"), picture, load).catch(tell);
  }

  async preview() {
    const cell = this.explained;
    if (!cell) return;
    this.panel = "preview";
    this.previewed = null;
    const verdict = cell.verdict === "keep" ? "keep" : "reject";
    const body = { instance_id: cell.id, label: cell.label, verdict };
    const found = await post("preview", this.queue.settings.token, body).catch((error) => ({ error: error.message }));
    this.previewed = { cell, verdict, ...found };
    this.draw();
  }

  // ---- keys of one's own

  learnKey(name) {
    this.learning = name;
    this.note = `Press the key for: ${keyboard.ACTIONS[name].text}`;
    this.draw();
  }

  takeKey(event) {
    event.preventDefault();
    const { key } = event;
    if (["Shift", "Control", "Alt", "Meta"].includes(key)) return;
    const name = this.learning;
    this.learning = "";
    this.note = key === "Escape" ? "" : keyboard.whyNotFree(this.keys, name, key);
    if (key === "Escape" || this.note) this.draw();
    else this.setKeys({ ...this.keys, [name]: [key] });
  }

  setKeys(keys) {
    if (!keyboard.rememberKeys(keys)) this.note = "This browser does not keep keys.";
    this.keys = keys ?? keyboard.readKeys();
    this.drawButtons();
    this.draw();
  }

  // ---- drawing

  draw() {
    const { queue, part } = this;
    const { item } = queue;
    part("empty").hidden = Boolean(item);
    part("stage").hidden = !item;
    if (item) drawItem(this, item);
    else this.drawEmpty();
    this.drawHead(item);
    drawPanel(this);
    this.drawStatus();
    part("desk").dataset.item = item ? item.key : ""; // what tests wait for
    part("desk").dataset.count = queue.answers.length;
  }

  drawEmpty() {
    const { trouble, isExhausted, nElsewhere, settings } = this.queue;
    let text = "Ranking what to ask …";
    if (trouble) text = `No questions: ${trouble}`;
    else if (isExhausted && nElsewhere) text = "What is left to ask is on other people's desks.";
    else if (isExhausted && settings.query.order === "thirty") text = "The audit is answered. What it says is above.";
    else if (isExhausted) text = "Nothing left to ask with this order and these filters.";
    this.part("empty").textContent = text;
    this.part("desk").dataset.state = trouble ? "trouble" : isExhausted ? "done" : "waiting";
  }

  drawHead(item) {
    const { part, queue } = this;
    if (item) part("desk").dataset.state = "asking";
    part("name").textContent = item?.title ?? "";
    part("reason").textContent = item ? [item.reason, item.promise].filter(Boolean).join(" · ") : "";
    part("progress").textContent = queue.progress?.text ?? "";
    part("meter").hidden = !queue.progress && Boolean(item || queue.trouble); // without a value it says: at work
    if (queue.progress) part("meter").value = queue.progress.share;
    else part("meter").removeAttribute("value");
  }

  drawButtons() {
    const made = Object.entries(keyboard.ACTIONS).flatMap(([name, { text, button: title }]) => {
      if (!title) return [];
      const one = button(title, text, () => this.change(() => this.act(name)));
      one.dataset.action = name;
      one.append(make("kbd", "", keyboard.keyName(this.keys[name][0])));
      return [one];
    });
    this.part("actions").replaceChildren(...made);
  }

  drawStatus() {
    drawStatus(this);
    const isWaiting = this.outbox.waiting.length > 0;
    if (!isWaiting && this.wasWaiting) this.afterSaving();
    this.wasWaiting = isWaiting;
  }

  /** A moment after the last answer was saved: what it settled, and the page's other parts. */
  afterSaving() {
    clearTimeout(this.idle);
    this.idle = setTimeout(async () => {
      const { token, query } = this.queue.settings;
      try {
        this.queue.progress = await post("progress", token, { order: query.order });
        this.drawHead(this.queue.item);
        this.trigger("answered", this.queue.answers.length);
      } catch (error) {
        console.debug("no progress", error);
      }
    }, IDLE);
  }
}
