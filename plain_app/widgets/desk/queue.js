// What one person has on the desk: questions behind, at and ahead of `at`. No drawing here.
/** @import { Cell, Decision, Item, Progress, Settings, Verdict } from "./types" */
import { newUid, post, retryDelay, session } from "./server.js";

const AHEAD = 15; // fetch more when fewer questions are left
const RENEW = 10; // answers after which the rest of the queue is put in a new order
const NAMED = 300; // instances named in a request for questions, at most
const REMEMBERED = 300; // questions on the desk, those behind included

export class Queue {
  items = /** @type {Item[]} */ ([]);
  dropped = /** @type {string[]} */ ([]); // instances that were on the desk and go back to the others
  answers = /** @type {{ item: Item, decisions: Decision[] }[]} */ ([]); // for undo, newest last
  progress = /** @type {Progress | null} */ (null);
  at = 0;
  mark = 0; // the marked candidate or tile
  sinceRenewal = 0;
  isFetching = false;
  isExhausted = false;
  nElsewhere = 0; // questions on other people's desks
  failures = 0; // in a row
  notBefore = 0; // when the server may be asked again
  trouble = "";
  lookedSince = performance.now();
  changed = () => {};

  constructor(settings, outbox) {
    this.settings = /** @type {Settings} */ (settings);
    this.outbox = /** @type {import("./outbox.js").Outbox} */ (outbox);
  }

  /** @returns {Item | undefined} */
  get item() {
    return this.items[this.at];
  }

  /** Whether nothing is shown of an item's confidences before it is answered. */
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
    const skipped = this.items.filter((one) => one.isSkipped);
    const unsaved = this.outbox.waiting.map((one) => one.decision.instance_id);
    const have = [...new Set([...idsOf(kept), ...unsaved, ...idsOf(skipped)])].slice(0, NAMED);
    const dropped = this.dropped.slice(0, NAMED);
    try {
      const { token, query } = this.settings;
      const reply = await post("questions", token, { ...query, have, dropped });
      this.dropped = this.dropped.filter((id) => !dropped.includes(id));
      this.takeOver(reply, kept, start);
      this.isExhausted = reply.items.length === 0;
      this.nElsewhere = reply.elsewhere;
      this.progress = reply.progress;
      this.trouble = "";
      this.failures = 0;
      // All of it was answered meanwhile, or others have the rest: ask again, soon or later.
      const pause = this.isExhausted ? retryDelay(9, 10000) : 0;
      if (!this.item) setTimeout(() => this.item || this.fetchMore(), pause);
    } catch (error) {
      this.trouble = error.status ? error.message : "the server does not answer";
      if (error.status === 401) session.rerun();
      const pause = retryDelay(++this.failures, 30000);
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
    const here = item ? this.items.indexOf(item) : -1;
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

  /** @param {(Verdict | null)[]} verdicts */
  answer(verdicts) {
    const { item } = this;
    if (!item) return;
    const seconds = Math.min((performance.now() - this.lookedSince) / 1000, 3600);
    const shared = { seconds, shown: !this.isBlind(item), batch: newUid() };
    const decisions = item.cells.flatMap((cell, at) => {
      const { id, label, confidence, sampled, decided } = cell;
      const verdict = verdicts[at];
      if (!verdict || verdict === decided) return [];
      return { uid: newUid(), instance_id: id, label, verdict, confidence, sampled: Boolean(sampled), ...shared };
    });
    this.outbox.add(this.settings.token, decisions);
    item.cells.forEach((cell, at) => (cell.decided = verdicts[at] ?? cell.decided));
    item.answer = decisions.map((one) => one.uid);
    item.isSkipped = false;
    item.doneAt = performance.now();
    this.answers.push({ item, decisions });
    this.advance();
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
    const undone = last.decisions.map(
      ({ batch: _, ...rest }) => /** @type {Decision} */ ({ ...rest, uid: newUid(), verdict: "undo", seconds: 0 }),
    );
    this.outbox.add(this.settings.token, undone.reverse());
    last.item.doneAt = 0;
    last.item.answer = null;
    for (const cell of last.item.cells) cell.decided = cell.decidedBefore;
    let at = this.items.indexOf(last.item);
    if (at < 0) this.items.splice((at = this.at), 0, last.item);
    this.goTo(at);
    return true;
  }
}

/** @param {Item[]} items */
const idsOf = (items) => items.flatMap((one) => one.ids);

/** @param {Item} item */
function prepare(item, isBlind) {
  item.doneAt = 0;
  for (const cell of item.cells) {
    cell.decidedBefore = cell.decided ?? null;
    cell.verdict = cell.decided ?? (isBlind || !cell.asked ? null : cell.proposed);
  }
}

// What Accept or Reject all says of each cell; null where it says nothing, nothing at all where a
// person who sees no confidences has ticked none.
/** @type {(action: string, cells: Cell[], isGrid: boolean, isBlind: boolean) => (Verdict | null)[] | null} */
export function verdictsOf(action, cells, isGrid, isBlind) {
  const counts = (cell) => cell.asked || cell.isTouched;
  if (action === "reject") return cells.map((cell) => (counts(cell) && (cell.verdict || !isGrid) ? "reject" : null));
  if (!isBlind || isGrid) return cells.map((cell) => (counts(cell) ? cell.verdict : null));
  if (!cells.some((cell) => cell.verdict)) return null;
  return cells.map((cell) => cell.verdict ?? (cell.asked ? "reject" : null));
}
