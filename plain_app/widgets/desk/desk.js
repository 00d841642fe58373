// The review desk: questions come in ahead of time, answers go out one by one. A key press changes
// the screen at once; its answer is first kept in the browser (localStorage), then sent, and
// dropped there only when the server says that it is committed. No framework, one module.
// Names, texts and ids are data: they are only ever set as textContent.

const PREFIX = "plain.answer."; // localStorage: one entry per answer that is not saved yet
const KEYS = "plain.review.keys"; // localStorage: keys of this person's own choice
const AHEAD = 15; // fetch more when fewer questions are left
const RENEW = 10; // answers after which the rest of the queue is put in a new order
const BATCH = 100; // answers per request, at most
const NAMED = 300; // instances named in a request for questions, at most
const FINAL = [400, 403, 413, 415, 422]; // asking again would change nothing
const ATTEMPTS = 5; // how often one answer may make the server fail before it is set aside
const REMEMBERED = 300; // questions on the desk, those behind included
const SLOW = 1500; // milliseconds after which an answer counts as not saved
const TIMEOUT = 15000;
const RENEWAL = 100000; // milliseconds after which what is on the desk is claimed anew

const ACTIONS = {
  accept: ["Accept what is shown, go on", ["a", "Enter"]],
  reject: ["Reject all, go on", ["x"]],
  skip: ["Skip", [" "]],
  undo: ["Undo the last answer", ["u", "Backspace"]],
  next: ["Next question", ["ArrowRight"]],
  back: ["Previous question", ["ArrowLeft"]],
  down: ["Next candidate", ["ArrowDown"]],
  up: ["Previous candidate", ["ArrowUp"]],
  toggle: ["Change the marked candidate", ["t"]],
  keep: ["Keep the marked candidate", ["k"]],
  drop: ["Reject the marked candidate", ["n"]],
  unsure: ["Unsure about the marked candidate", ["m"]],
  preview: ["What would move", ["p"]],
  why: ["Why this confidence", ["e"]],
  help: ["All keys", ["?"]],
};
const RESERVED = ["r", "c", "R", "C", "Tab", "Escape"]; // Streamlit's, the browser's, ours
const KEY_NAMES = {
  " ": "space", ArrowRight: "→", ArrowLeft: "←", ArrowUp: "↑", ArrowDown: "↓",
  Backspace: "⌫", Enter: "⏎",
};
const VERDICTS = ["keep", "reject", "unsure"];
const MARKS = { keep: "✓", reject: "✗", unsure: "?" };
const IN_GRID = { next: [1, 0], back: [-1, 0], down: [0, 1], up: [0, -1] };

// ------------------------------------------------------------------------------- answers on their way

async function post(what, token, body) {
  const answer = await fetch(`${location.origin}/api/${what}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-plain-token": token },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(TIMEOUT),
  });
  const told = answer.headers.get("content-type")?.includes("json") ? await answer.json() : {};
  if (!answer.ok) throw Object.assign(new Error(told.error ?? `error ${answer.status}`), { status: answer.status });
  return told;
}

// How long to wait after so many failures: ever longer, and not all desks at the same moment.
function pauseAfter(failures, most) {
  return Math.min(250 * 2 ** failures, most) * (0.5 + Math.random());
}

// Tokens expire. The page, which knows who is logged in, gives a fresh one at every rerun.
const page = { token: "", rerun() {} };

class Outbox {
  constructor() {
    this.waiting = readWaiting();
    this.aside = []; // answers that cannot be sent, and why; the browser keeps them
    this.limit = BATCH;
    this.failures = 0; // in a row
    this.trouble = "";
    this.hasSaved = false;
    this.isKept = true; // whether this browser keeps what is not saved
    this.listeners = new Set();
    this.serial = 0;
    window.addEventListener("online", () => this.send());
  }

  add(token, decisions) {
    for (const decision of decisions) {
      const slot = `${PREFIX}${Date.now()}.${String(this.serial++).padStart(9, "0")}`;
      const entry = { slot, token, decision, since: Date.now() };
      this.waiting.push(entry);
      this.keep(entry);
    }
    this.send();
  }

  keep({ slot, token, decision, since }) {
    try {
      localStorage.setItem(slot, JSON.stringify({ token, decision, since }));
    } catch {
      this.isKept = false;
    }
  }

  isWaiting(uid) {
    return this.waiting.some((one) => one.decision.uid === uid);
  }

  async send() {
    if (this.isSending || !this.waiting.length) return;
    this.isSending = true;
    clearTimeout(this.timer);
    try {
      while (this.waiting.length) await this.sendSome();
    } catch (error) {
      this.trouble = navigator.onLine === false ? "no network" : error.status === 401 ? error.message : "the server does not answer";
      this.timer = setTimeout(() => this.send(), pauseAfter(++this.failures, 8000));
      console.debug("not saved yet", error);
    } finally {
      this.isSending = false;
    }
    this.tell();
  }

  async sendSome() {
    const { token } = this.waiting[0];
    const end = this.waiting.findIndex((one) => one.token !== token);
    const batch = this.waiting.slice(0, Math.min(this.limit, end < 0 ? BATCH : end));
    const decisions = batch.map((one) => ({ ...one.decision, age: (Date.now() - one.since) / 1000 }));
    try {
      const told = await post("decisions", token, { decisions });
      const refused = new Map(told.refused.map((one) => [one.uid, one.why]));
      const isSaved = new Set(told.saved);
      this.drop(batch.filter((one) => isSaved.has(one.decision.uid)));
      for (const one of batch) if (refused.has(one.decision.uid)) this.setAside([one], refused.get(one.decision.uid));
      this.limit = Math.min(2 * this.limit, BATCH);
    } catch (error) {
      if (error.status === 401) return this.renew(token);
      if (!this.isHopeless(batch, error)) throw error;
      return;
    }
    this.trouble = "";
    this.failures = 0;
    this.hasSaved = true;
    this.tell();
  }

  // Whether it is of no use to send this again as it is: then it is sent in halves, to find the
  // answer it is about, and that one is set aside, so that the others get through.
  isHopeless(batch, error) {
    if (!FINAL.includes(error.status) && error.status !== 500) return false;
    if (batch.length > 1 && error.status !== 403) this.limit = Math.ceil(batch.length / 2);
    else if (error.status === 500 && (batch[0].attempts = (batch[0].attempts ?? 0) + 1) < ATTEMPTS) return false;
    else this.setAside(batch, error.message);
    return true;
  }

  // An undo of what was not saved would take back an older answer: it is set aside too.
  setAside(entries, why) {
    const cell = ({ decision }) => JSON.stringify([decision.instance_id, decision.label]);
    const cells = new Set(entries.map(cell));
    const undone = this.waiting.filter((one) => !entries.includes(one) && one.decision.verdict === "undo" && cells.has(cell(one)));
    this.waiting = this.waiting.filter((one) => !entries.includes(one) && !undone.includes(one));
    this.aside.push(...[...entries, ...undone].map((entry) => ({ entry, why })));
    this.tell();
  }

  sendAside() {
    this.waiting.push(...this.aside.map(({ entry }) => entry));
    this.aside = [];
    this.send();
  }

  discardAside() {
    this.drop(this.aside.map(({ entry }) => entry));
    this.aside = [];
    this.tell();
  }

  // Give the answers of an expired token a fresh one. Another person's wait until that person is back.
  async renew(token) {
    const isOld = (one) => one.token === token;
    try {
      const told = await post("token", page.token, { token });
      for (const one of this.waiting.filter(isOld)) this.keep(Object.assign(one, told));
    } catch (error) {
      if (error.status === 401) page.rerun();
      if (error.status !== 403) throw error;
      this.setAside(this.waiting.filter(isOld), error.message);
    }
  }

  drop(entries) {
    const gone = new Set(entries);
    this.waiting = this.waiting.filter((one) => !gone.has(one));
    for (const { slot } of entries) {
      try {
        localStorage.removeItem(slot);
      } catch {
        this.isKept = false;
      }
    }
  }

  tell() {
    for (const listener of this.listeners) listener();
  }
}

function readWaiting() {
  try {
    return Object.keys(localStorage)
      .filter((key) => key.startsWith(PREFIX))
      .sort()
      .map((slot) => ({ slot, since: Date.now(), ...JSON.parse(localStorage.getItem(slot)) }));
  } catch {
    return [];
  }
}

const outbox = new Outbox();
outbox.send();

const newUid = () =>
  crypto.randomUUID?.().replaceAll("-", "") ??
  [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");

// ------------------------------------------------------------------------------------ the questions

// What one person has on the desk: questions behind, at and ahead of `at`. No drawing here.
class Desk {
  constructor(settings) {
    this.settings = settings;
    this.dropped = []; // instances that were on the desk and go back to the others
    this.items = [];
    this.at = 0;
    this.mark = 0; // the marked candidate or tile
    this.answers = []; // for undo, newest last
    this.sinceRenewal = 0;
    this.isFetching = false;
    this.isExhausted = false;
    this.failures = 0; // in a row
    this.notBefore = 0; // when the server may be asked again
    this.trouble = "";
    this.progress = null;
    this.changed = () => {};
    this.lookedSince = performance.now();
  }

  get item() {
    return this.items[this.at];
  }

  // Whether nothing is shown of an item's confidences before it is answered.
  isBlind(item) {
    return Boolean(this.settings.blind || item?.blind);
  }

  isHidden(item) {
    return this.isBlind(item) && !item.answer;
  }

  get left() {
    return this.items.slice(this.at).filter((one) => !one.doneAt).length;
  }

  async fetchMore() {
    if (this.isFetching || performance.now() < this.notBefore) return;
    this.isFetching = true;
    const start = performance.now();
    const kept = this.items.slice(this.at, this.at + 2).filter((one) => !one.doneAt);
    const aside = this.items.filter((one) => one.isSkipped);
    const unsaved = outbox.waiting.map((one) => one.decision.instance_id);
    const have = [...new Set([...idsOf(kept), ...unsaved, ...idsOf(aside)])].slice(0, NAMED);
    const dropped = this.dropped.slice(0, NAMED);
    try {
      const told = await post("questions", this.settings.token, { ...this.settings.query, have, dropped });
      this.dropped = this.dropped.filter((id) => !dropped.includes(id));
      this.takeOver(told, kept, start);
      this.isExhausted = told.items.length === 0;
      this.nElsewhere = told.elsewhere;
      this.progress = told.progress;
      this.trouble = "";
      this.failures = 0;
      // All of it was answered meanwhile, or others have the rest: ask again, soon or later.
      if (!this.item) setTimeout(() => this.item || this.fetchMore(), this.isExhausted ? pauseAfter(9, 10000) : 0);
    } catch (error) {
      this.trouble = error.status ? error.message : "the server does not answer";
      if (error.status === 401) page.rerun();
      const pause = pauseAfter(++this.failures, 30000);
      this.notBefore = performance.now() + pause;
      setTimeout(() => this.left < AHEAD && this.fetchMore(), pause + 1);
    } finally {
      this.isFetching = false;
    }
    this.changed();
  }

  // Keep what was answered and what is being looked at; the rest is as the server orders it now,
  // without what was answered since it was asked for, and what somebody else has by now.
  takeOver({ items, lost }, kept, start) {
    const { item, at } = this;
    const isLost = (one) => !one.doneAt && one.ids.some((id) => lost.includes(id));
    const stays = (one, place) => place < at || one.doneAt || kept.includes(one);
    const before = this.items.filter((one, place) => stays(one, place) && !isLost(one));
    const isTaken = (one) => before.some((other) => other.key === one.key && (!other.doneAt || other.doneAt > start));
    const fresh = items.filter((one) => !isTaken(one));
    for (const one of fresh) prepare(one, this.isBlind(one));
    const after = [...before, ...fresh];
    const remaining = new Set(idsOf(after));
    this.dropped.push(...idsOf(this.items).filter((id) => !remaining.has(id)));
    this.items = after.slice(-REMEMBERED);
    const here = this.items.indexOf(item);
    const next = this.items.findIndex((one) => !one.doneAt);
    if (here < 0) this.lookedSince = performance.now();
    this.at = here >= 0 ? here : next >= 0 ? next : this.items.length;
    this.sinceRenewal = 0;
  }

  advance() {
    let next = this.at + 1;
    while (this.items[next]?.doneAt) next++;
    this.goTo(next);
    this.sinceRenewal++;
    if (this.left < AHEAD || this.sinceRenewal >= RENEW) this.fetchMore();
  }

  goTo(at) {
    this.at = Math.max(0, Math.min(at, this.items.length));
    this.mark = 0;
    this.lookedSince = performance.now();
  }

  answer(verdicts) {
    const { item } = this;
    const seconds = Math.min((performance.now() - this.lookedSince) / 1000, 3600);
    const batch = newUid();
    const decisions = item.cells
      .map((cell, at) => ({ cell, verdict: verdicts[at] }))
      .filter(({ cell, verdict }) => verdict && verdict !== cell.standing)
      .map(({ cell, verdict }) => ({ ...this.decision(item, cell, verdict, seconds), batch }));
    outbox.add(this.settings.token, decisions);
    item.cells.forEach((cell, at) => (cell.standing = verdicts[at] ?? cell.standing));
    item.answer = decisions.map((one) => one.uid);
    item.isSkipped = false;
    item.doneAt = performance.now();
    this.answers.push({ item, decisions });
    this.last = { item, decisions };
    this.advance();
  }

  decision(item, cell, verdict, seconds) {
    return {
      uid: newUid(),
      instance_id: cell.id,
      label: cell.label,
      verdict,
      confidence: cell.confidence,
      shown: !this.isBlind(item),
      sampled: Boolean(cell.sampled),
      seconds,
    };
  }

  skip() {
    if (!this.item) return;
    this.item.isSkipped = true;
    this.item.doneAt = performance.now();
    this.advance();
  }

  undo() {
    const last = this.answers.pop();
    if (!last) return false;
    const undone = last.decisions.map(({ uid, seconds, batch, ...rest }) => ({ ...rest, uid: newUid(), verdict: "undo", seconds: 0 }));
    outbox.add(this.settings.token, undone.reverse());
    last.item.doneAt = 0;
    last.item.answer = null;
    for (const cell of last.item.cells) cell.standing = cell.stood;
    let at = this.items.indexOf(last.item);
    if (at < 0) this.items.splice((at = this.at), 0, last.item);
    this.last = this.answers.at(-1) ?? null;
    this.goTo(at);
    return true;
  }
}

function idsOf(items) {
  return items.flatMap((one) => one.ids);
}

function prepare(item, isBlind) {
  item.doneAt = 0; // or when it was answered or skipped here
  for (const cell of item.cells) {
    cell.stood = cell.standing ?? null; // what held before this sitting
    cell.verdict = cell.standing ?? (isBlind || !cell.asked ? null : cell.proposed);
  }
}

// ---------------------------------------------------------------------------------------- the keys

function readKeys() {
  const own = (() => {
    try {
      return JSON.parse(localStorage.getItem(KEYS)) ?? {};
    } catch {
      return {};
    }
  })();
  const usable = (keys) => Array.isArray(keys) && keys.length && keys.every((one) => typeof one === "string");
  return Object.fromEntries(
    Object.entries(ACTIONS).map(([name, [, keys]]) => [name, usable(own[name]) ? own[name] : keys]),
  );
}

function keyName(key) {
  return KEY_NAMES[key] ?? key;
}

// The desk goes on without the server and says so itself: Streamlit's message would only cover it.
function closeConnectionError() {
  const dialog = document.querySelector('[data-testid="stDialog"]');
  if (!dialog?.textContent.startsWith("Connection error")) return false;
  dialog.querySelector('button[aria-label="Close"]')?.click();
  return true;
}

// Whether a key press belongs to something else: a field, a dialog, a table, a focused button.
function isTaken(event, root) {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return true;
  if (closeConnectionError()) return false;
  if (document.querySelector('[role="dialog"]')) return true;
  for (const one of event.composedPath()) {
    if (one === root) return false;
    if (!(one instanceof Element)) continue;
    const isField = /^(input|textarea|select)$/i.test(one.tagName) || one.isContentEditable;
    const role = one.getAttribute("role") ?? "";
    if (isField && !/^(checkbox|radio|button)$/i.test(one.type ?? "")) return true;
    if (/^(listbox|option|combobox|textbox|slider|grid|menu|menuitem)$/.test(role)) return true;
    if (one.matches('[data-testid="stDataFrame"]')) return true;
    const isPressable = /^(button|a|summary|input)$/i.test(one.tagName) || /^(tab|radio)$/.test(role);
    if (isPressable && (event.key === "Enter" || event.key === " " || event.key.startsWith("Arrow"))) return true;
  }
  return false;
}

// ------------------------------------------------------------------------------------------- drawing

function make(tag, kind = "", text = "") {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  if (text !== "") element.textContent = text;
  return element;
}

function button(text, title, act) {
  const element = make("button", "", text);
  element.type = "button";
  element.title = title;
  element.onmousedown = (event) => event.preventDefault(); // keys stay with the desk
  element.onclick = act;
  return element;
}

function sparkline(values) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 60 18");
  svg.setAttribute("class", "spark");
  if (values?.length > 1) {
    const line = document.createElementNS(space, "polyline");
    const x = (at) => 1 + (58 * at) / (values.length - 1);
    line.setAttribute("points", values.map((one, at) => `${x(at).toFixed(1)},${(17 - 16 * one).toFixed(1)}`).join(" "));
    svg.append(line);
  }
  return svg;
}

const percent = (value) => (value == null ? "" : value.toFixed(2));

class View {
  constructor(root) {
    this.root = root;
    this.part = (name) => root.querySelector(`[data-part="${name}"]`);
    this.keys = readKeys();
    this.panel = ""; // "", "help" or "preview"
    this.draw = this.draw.bind(this);
    this.drawStatus = this.drawStatus.bind(this);
    this.onKey = this.onKey.bind(this);
    this.part("desk").onpointerdown = () => this.part("desk").focus({ preventScroll: true });
    document.addEventListener("keydown", this.onKey);
    outbox.listeners.add(this.drawStatus);
    this.clock = setInterval(() => {
      closeConnectionError();
      if (outbox.waiting.length) this.drawStatus();
    }, 500);
    this.renewal = setInterval(() => this.desk?.item && this.desk.fetchMore(), RENEWAL);
    this.drawButtons();
  }

  show(desk, trigger) {
    this.trigger = trigger;
    if (this.desk !== desk) {
      if (this.desk) this.desk.changed = () => {};
      this.desk = desk;
      desk.changed = this.draw;
      if (!desk.item) desk.fetchMore();
    }
    this.draw();
  }

  destroy() {
    document.removeEventListener("keydown", this.onKey);
    outbox.listeners.delete(this.drawStatus);
    clearInterval(this.clock);
    clearInterval(this.renewal);
    clearTimeout(this.idle);
    if (this.desk) this.desk.changed = () => {};
  }

  get isGrid() {
    return this.desk?.item?.kind === "same";
  }

  // ---- acting

  onKey(event) {
    if (!this.desk || isTaken(event, this.root.host ?? this.root)) return;
    if (this.learning) return this.learn(event);
    const digit = /^[0-9]$/.test(event.key) && !this.isGrid ? (Number(event.key) + 9) % 10 : -1;
    const name = Object.keys(this.keys).find((one) => this.keys[one].includes(event.key));
    if (event.key === "Escape") this.panel = "";
    else if (digit >= 0) this.toggle(digit);
    else if (name) this.act(name);
    else return;
    event.preventDefault();
    event.stopPropagation();
    this.draw();
  }

  act(name) {
    const { desk } = this;
    if (name === "help") this.panel = this.panel === "help" ? "" : "help";
    else if (name === "undo") desk.undo() || this.say("Nothing to undo here. Older decisions are listed below.");
    else if (name === "back" && !this.isGrid) desk.goTo(desk.at - 1);
    else if (!desk.item) return;
    else if (name === "next" && !this.isGrid) desk.at + 1 < desk.items.length && desk.goTo(desk.at + 1);
    else if (name in IN_GRID) this.move(...IN_GRID[name]);
    else if (name === "accept" || name === "reject") this.answer(name);
    else if (name === "skip") desk.skip();
    else if (name === "toggle") this.toggle(desk.mark);
    else if (name === "preview") this.preview();
    else if (name === "why") this.why();
    else this.set(desk.mark, { keep: "keep", drop: "reject", unsure: "unsure" }[name]);
    if (name !== "help" && name !== "preview") this.panel = "";
  }

  move(across, down) {
    const n = this.desk.item.cells.length;
    const step = this.isGrid ? across + down * this.columns() : down;
    this.desk.mark = Math.max(0, Math.min(n - 1, this.desk.mark + step));
  }

  columns() {
    return getComputedStyle(this.part("grid")).gridTemplateColumns.split(" ").length;
  }

  toggle(at) {
    const cell = this.desk.item?.cells[at];
    if (!cell) return;
    if (this.isGrid && cell.verdict === "reject") this.set(at, null);
    else this.set(at, cell.verdict === "keep" ? "reject" : "keep");
  }

  set(at, verdict) {
    const cell = this.desk.item?.cells[at];
    if (!cell) return;
    this.desk.mark = at;
    cell.verdict = verdict;
    cell.isTouched = true;
  }

  answer(name) {
    const { cells } = this.desk.item;
    const counts = (cell) => cell.asked || cell.isTouched;
    let verdicts;
    if (name === "reject") verdicts = cells.map((cell) => (counts(cell) && (cell.verdict || !this.isGrid) ? "reject" : null));
    else if (this.desk.isBlind(this.desk.item) && !this.isGrid) {
      if (!cells.some((cell) => cell.verdict)) return this.say("Blind: tick what is true first, or reject all.");
      verdicts = cells.map((cell) => cell.verdict ?? (cell.asked ? "reject" : null));
    } else verdicts = cells.map((cell) => (counts(cell) ? cell.verdict : null));
    this.desk.answer(verdicts);
    this.note = "";
  }

  say(text) {
    this.note = text;
  }

  why() {
    if (this.desk.isHidden(this.desk.item)) return this.say("Blind: it is told after the answer.");
    const cell = this.desk.item.cells[this.desk.mark];
    if (cell) this.trigger("why", { instance: cell.id, label: cell.label });
  }

  async preview() {
    const cell = this.desk.item.cells[this.desk.mark];
    if (!cell) return;
    if (this.desk.isHidden(this.desk.item)) return this.say("Blind: it is told after the answer.");
    this.panel = "preview";
    this.previewed = null;
    const verdict = cell.verdict === "keep" ? "keep" : "reject";
    try {
      const body = { instance_id: cell.id, label: cell.label, verdict };
      this.previewed = { cell, verdict, ...(await post("ripple", this.desk.settings.token, body)) };
    } catch (error) {
      this.previewed = { cell, verdict, moved: [], total: 0, error: error.message };
    }
    this.draw();
  }

  learn(event) {
    event.preventDefault();
    const { key } = event;
    const name = this.learning;
    if (["Shift", "Control", "Alt", "Meta"].includes(key)) return;
    this.learning = "";
    const taken = Object.keys(this.keys).find((one) => one !== name && this.keys[one].includes(key));
    if (key === "Escape") this.say("");
    else if (RESERVED.includes(key) || /^F\d|^[0-9]$/.test(key)) this.say(`${keyName(key)} is not free.`);
    else if (taken) this.say(`${keyName(key)} already means: ${ACTIONS[taken][0]}.`);
    else this.rememberKeys({ ...this.keys, [name]: [key] });
    this.draw();
  }

  rememberKeys(keys) {
    try {
      if (keys) localStorage.setItem(KEYS, JSON.stringify(keys));
      else localStorage.removeItem(KEYS);
    } catch {
      this.say("This browser does not keep keys.");
    }
    this.keys = keys ?? readKeys();
    this.drawButtons();
  }

  // ---- drawing

  draw() {
    const { desk, part } = this;
    const { item } = desk;
    part("empty").hidden = Boolean(item);
    part("stage").hidden = !item;
    if (!item) this.drawEmpty();
    else {
      part("one").hidden = this.isGrid;
      part("grid").hidden = !this.isGrid;
      this.isGrid ? this.drawGrid(item) : this.drawOne(item);
    }
    this.drawHead(item);
    this.drawPanel();
    this.drawStatus();
    part("desk").dataset.item = item ? item.key : ""; // what tests wait for
    part("desk").dataset.count = desk.answers.length;
  }

  drawEmpty() {
    const { desk } = this;
    const text = desk.trouble
      ? `No questions: ${desk.trouble}`
      : desk.isExhausted
        ? desk.nElsewhere
          ? "What is left to ask is on other people's desks."
          : desk.settings.query.order === "thirty"
            ? "The audit is answered. What it says is above."
            : "Nothing left to ask with this order and these filters."
        : "Getting questions …";
    this.part("empty").textContent = text;
    this.part("desk").dataset.state = desk.trouble ? "trouble" : desk.isExhausted ? "done" : "waiting";
  }

  drawHead(item) {
    const { part, desk } = this;
    if (item) part("desk").dataset.state = "asking";
    part("name").textContent = item?.title ?? "";
    part("reason").textContent = item ? [item.reason, item.promise].filter(Boolean).join(" · ") : "";
    const told = desk.progress;
    part("progress").textContent = told?.text ?? "";
    const bar = part("meter");
    bar.hidden = !told;
    if (told) bar.value = told.share;
  }

  drawOne(item) {
    const { part } = this;
    const picture = part("picture");
    picture.hidden = !item.picture;
    if (item.picture && picture.src !== item.picture) picture.src = item.picture;
    picture.classList.toggle("tiny", (item.picture ?? "").length < 6000);
    part("texts").replaceChildren(...item.texts.flatMap(([name, text]) => [make("dt", "", name), make("dd", "", text)]));
    part("near").replaceChildren(...item.near.map((one) => this.neighbour(one)));
    part("near").classList.toggle("words", !item.near.some((one) => one.picture));
    part("nearby").hidden = !item.near.length;
    part("rows").replaceChildren(...item.cells.map((cell, at) => this.row(cell, at, item)));
    part("rows").children[this.desk.mark]?.scrollIntoView({ block: "nearest" });
  }

  neighbour({ title, picture, text }) {
    const box = make("figure");
    if (picture) {
      const image = make("img", picture.length < 6000 ? "tiny" : "");
      image.src = picture;
      image.alt = "";
      box.append(image);
    }
    box.append(make("figcaption", "", text || title));
    box.title = [title, text].filter(Boolean).join("\n");
    return box;
  }

  row(cell, at, item) {
    const row = make("div", "row");
    row.dataset.verdict = cell.verdict ?? "";
    row.classList.toggle("marked", at === this.desk.mark);
    row.classList.toggle("aside", !cell.asked && !cell.isTouched && !cell.standing);
    row.onmousedown = () => ((this.desk.mark = at), this.draw());
    const isHidden = this.desk.isHidden(item);
    const bar = make("span", "bar");
    if (!isHidden) bar.style.setProperty("--share", cell.confidence ?? 0);
    const verdicts = make("span", "verdicts");
    for (const verdict of VERDICTS) {
      const one = button(MARKS[verdict], verdict, () => (this.set(at, verdict), this.draw()));
      one.setAttribute("aria-pressed", String(cell.verdict === verdict));
      one.dataset.verdict = verdict;
      verdicts.append(one);
    }
    const name = make("span", "label", cell.name);
    name.title = cell.sampled ? `${cell.name} (drawn at random, for the estimates)` : cell.name;
    row.append(
      make("kbd", "", at < 10 ? String((at + 1) % 10) : ""), name, bar,
      make("span", "number", isHidden ? "·" : percent(cell.confidence)),
      isHidden ? make("span", "spark") : sparkline(cell.history), verdicts,
    );
    if (cell.offered) {
      row.append(make("span", "votes", isHidden ? "\u00a0" : cell.offered)); // the line stays: nothing jumps
      if (!isHidden) row.lastChild.title = cell.offered;
    }
    return row;
  }

  drawGrid(item) {
    const tiles = item.cells.map((cell, at) => {
      const tile = make("div", "tile");
      tile.dataset.verdict = cell.verdict ?? "";
      tile.classList.toggle("marked", at === this.desk.mark);
      tile.onmousedown = (event) => (event.preventDefault(), (this.desk.mark = at), this.toggle(at), this.draw());
      if (cell.picture) {
        const image = make("img", cell.picture.length < 6000 ? "tiny" : "");
        image.src = cell.picture;
        image.alt = "";
        tile.append(image);
      }
      tile.append(make("span", "caption", cell.text || cell.id));
      const number = this.desk.settings.blind ? "" : percent(cell.confidence);
      tile.append(make("span", "number", `${MARKS[cell.verdict] ?? "–"} ${number}`));
      tile.title = [cell.id, this.desk.settings.blind ? "" : cell.offered].filter(Boolean).join("\n");
      return tile;
    });
    this.part("grid").replaceChildren(...tiles);
  }

  drawButtons() {
    const { part, keys } = this;
    const list = [["accept", "Accept"], ["reject", "Reject all"], ["skip", "Skip"], ["undo", "Undo"], ["preview", "What would move"], ["why", "Why"], ["help", "Keys"]];
    const made = list.map(([name, text]) => {
      const one = button(text, ACTIONS[name][0], () => (this.act(name), this.draw()));
      one.dataset.action = name;
      one.append(make("kbd", "", keyName(keys[name][0])));
      return one;
    });
    part("actions").replaceChildren(...made);
  }

  drawStatus() {
    const { part, desk } = this;
    if (!desk) return;
    const own = outbox.waiting.length;
    const isLate = own > 0 && (outbox.trouble !== "" || Date.now() - outbox.waiting[0].since > SLOW);
    const { aside } = outbox;
    const kept = outbox.isKept ? "kept in this browser, sent as soon as it can be" : "do not close this page";
    const status = part("status");
    status.dataset.state = isLate ? "unsaved" : aside.length ? "refused" : own ? "saving" : "saved";
    status.dataset.waiting = own;
    status.textContent = isLate
      ? `⚠ ${own} not saved${outbox.trouble ? ` (${outbox.trouble})` : ""}: ${kept}`
      : own
        ? `saving ${own} …`
        : aside.length
          ? `⚠ ${aside.length} not taken`
          : outbox.hasSaved
            ? "✓ all saved"
            : "";
    this.drawAside(aside);
    part("desk").classList.toggle("unsaved", isLate);
    this.drawLast();
    if (!own && this.wasWaiting) this.afterSaving();
    this.wasWaiting = own > 0;
  }

  // Say which answers could not be saved, and what can be done about it.
  drawAside(aside) {
    const line = this.part("aside");
    line.hidden = !aside.length;
    if (this.lastAside === aside.at(-1)) return;
    this.lastAside = aside.at(-1);
    if (!aside.length) return line.replaceChildren();
    const { entry, why } = this.lastAside;
    const { instance_id, label, verdict } = entry.decision;
    const text = `${aside.length} not taken, kept in this browser. The last, ${instance_id} · ${label} ${verdict}: ${why}`;
    line.replaceChildren(
      make("span", "", text),
      button("Send again", "Try to save them once more", () => outbox.sendAside()),
      button("Discard", "Forget these answers", () => outbox.discardAside()),
    );
  }

  drawLast() {
    const { last } = this.desk;
    const line = this.part("last");
    if (this.note) return line.replaceChildren(make("span", "note", this.note));
    if (!last) return line.replaceChildren();
    const parts = last.decisions.slice(0, 6).map((one) => {
      const isSaved = !outbox.isWaiting(one.uid);
      const box = make("span", "said", `${one.label} ${one.verdict} ${this.told(last.item, one)} `);
      box.append(make("b", isSaved ? "tick" : "", isSaved ? "✓" : "…"));
      return box;
    });
    const more = last.decisions.length - parts.length;
    if (more > 0) parts.push(make("span", "said", `and ${more} more`));
    line.replaceChildren(make("span", "", `${last.item.title}: `), ...parts);
  }

  // What was kept from the person until the answer, or the confidence that was shown with it.
  told(item, { instance_id, label, verdict, confidence, shown }) {
    if (shown) return percent(confidence);
    const cell = item.cells.find((one) => one.id === instance_id && one.label === label);
    const proposed = cell?.proposed === verdict ? "so is the proposal" : `the proposal is ${cell?.proposed}`;
    const before = cell?.before ? `, you said ${cell.before} before` : "";
    return `(${proposed}, ${percent(confidence)}${before})`;
  }

  // A moment after the last answer was saved: what it settled, and the page's other parts.
  afterSaving() {
    clearTimeout(this.idle);
    this.idle = setTimeout(async () => {
      const { desk } = this;
      try {
        desk.progress = await post("progress", desk.settings.token, { order: desk.settings.query.order });
        this.drawHead(desk.item);
        this.trigger("answered", desk.answers.length);
      } catch (error) {
        console.debug("no progress", error);
      }
    }, 700);
  }

  drawPanel() {
    const panel = this.part("panel");
    panel.hidden = !this.panel;
    if (this.panel === "help") panel.replaceChildren(...this.help());
    if (this.panel === "preview") panel.replaceChildren(...this.ripple());
  }

  help() {
    const list = make("div", "keys");
    list.append(make("span", "", "Digits"), make("kbd", "", "1…9 0"), make("span", "", "keep or reject a candidate"), make("span"));
    for (const [name, [text]] of Object.entries(ACTIONS)) {
      const change = button("change", "Press the key you want", () => ((this.learning = name), this.say(`Press the key for: ${text}`), this.draw()));
      list.append(make("span", "", text), make("kbd", "", this.keys[name].map(keyName).join("  ")), make("span", "", this.learning === name ? "press a key …" : ""), change);
    }
    const reset = button("Keys as they came", "", () => (this.rememberKeys(null), this.draw()));
    return [make("h4", "", "Keys"), list, reset];
  }

  ripple() {
    const found = this.previewed;
    if (!found) return [make("p", "", "Looking …")];
    const title = `${found.verdict === "keep" ? "Keeping" : "Rejecting"} “${found.cell.label}” here`;
    if (found.error) return [make("h4", "", title), make("p", "", found.error)];
    const text = found.total ? `would move ${found.total.toLocaleString()} other cells, settle ${found.settles.toLocaleString()}:` : "would move no other cell.";
    const list = make("div", "moves");
    for (const one of found.moved) {
      list.append(make("span", "", one.title), make("span", "", one.label), make("span", "number", `${percent(one.before)} → ${percent(one.after)}`));
    }
    return [make("h4", "", title), make("p", "", text), list];
  }
}

// ------------------------------------------------------------------------------------------- the frame

const desks = new Map(); // by scope, so that what is on the desk survives reruns and page changes
const views = new Map(); // by root; the default export is called again at every rerun

export default function ({ data, parentElement, setTriggerValue }) {
  if (!desks.has(data.scope)) desks.set(data.scope, new Desk(data));
  const desk = desks.get(data.scope);
  Object.assign(desk.settings, data);
  Object.assign(page, { token: data.token, rerun: () => setTriggerValue("answered", desk.answers.length) });
  let view = views.get(parentElement);
  if (!view) views.set(parentElement, (view = new View(parentElement)));
  view.show(desk, setTriggerValue);
  return () => {
    view.destroy();
    views.delete(parentElement);
  };
}
