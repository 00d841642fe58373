// Answers on their way: each is kept in the browser (localStorage), then sent, in order, and dropped
// only when the server says that it is committed.
/** @import { Decision, Entry } from "./types" */
import { post, retryDelay, session } from "./server.js";
import { canStore } from "./storage.js";

const PREFIX = "plain.answer."; // localStorage: one entry per answer that is not saved yet
const BATCH = 100; // answers per request, at most
const FINAL = [400, 403, 413, 415, 422]; // asking again would change nothing
const ATTEMPTS = 5; // how often one answer may make the server fail before it is set aside
const SLOW = 1500; // milliseconds after which an answer counts as not saved

/** Tells with an event, "change", that an answer was saved or set aside, or could not be sent. */
export class Outbox extends EventTarget {
  waiting = readWaiting();
  aside = /** @type {{ entry: Entry, why: string }[]} */ ([]); // cannot be sent, and why; the browser keeps them
  limit = BATCH;
  failures = 0; // in a row
  trouble = "";
  hasSaved = false;
  isKept = true; // whether this browser keeps what is not saved
  isSending = false;
  serial = 0;

  constructor() {
    super();
    window.addEventListener("online", () => this.send());
  }

  /** @param {Decision[]} decisions */
  add(token, decisions) {
    for (const decision of decisions) {
      const slot = `${PREFIX}${Date.now()}.${String(this.serial++).padStart(9, "0")}`;
      const entry = { slot, token, decision, since: Date.now() };
      this.waiting.push(entry);
      this.keep(entry);
    }
    this.send();
  }

  /** @param {Entry} entry */
  keep({ slot, token, decision, since }) {
    const entry = JSON.stringify({ token, decision, since });
    this.isKept = canStore(() => localStorage.setItem(slot, entry)) && this.isKept;
  }

  isWaiting(uid) {
    return this.waiting.some((one) => one.decision.uid === uid);
  }

  get isLate() {
    return this.waiting.length > 0 && (this.trouble !== "" || Date.now() - this.waiting[0].since > SLOW);
  }

  async send() {
    if (this.isSending || !this.waiting.length) return;
    this.isSending = true;
    clearTimeout(this.timer);
    try {
      while (this.waiting.length) await this.sendSome();
    } catch (error) {
      if (navigator.onLine === false) this.trouble = "no network";
      else this.trouble = error.status === 401 ? error.message : "the server does not answer";
      this.timer = setTimeout(() => this.send(), retryDelay(++this.failures, 8000));
      console.debug("not saved yet", error);
    } finally {
      this.isSending = false;
    }
    this.notify();
  }

  /** Send the next answers of one token. */
  async sendSome() {
    const { token } = this.waiting[0];
    const end = this.waiting.findIndex((one) => one.token !== token);
    const batch = this.waiting.slice(0, Math.min(this.limit, end < 0 ? BATCH : end));
    const decisions = batch.map((one) => ({ ...one.decision, age: (Date.now() - one.since) / 1000 }));
    try {
      const reply = await post("decisions", token, { decisions });
      const saved = new Set(reply.saved);
      this.drop(batch.filter((one) => saved.has(one.decision.uid)));
      const called = (uid) => batch.filter((one) => one.decision.uid === uid);
      for (const { uid, why } of reply.refused) this.setAside(called(uid), why);
      this.limit = Math.min(2 * this.limit, BATCH);
    } catch (error) {
      if (error.status === 401) return this.renew(token);
      if (!this.isHopeless(batch, error)) throw error;
      return;
    }
    this.trouble = "";
    this.failures = 0;
    this.hasSaved = true;
    this.notify();
  }

  // Whether it is of no use to send this again as it is: then it is sent in halves, to find the
  // answer it is about, and that one is set aside, so that the others get through.
  isHopeless(batch, error) {
    const { status } = error;
    if (!FINAL.includes(status) && status !== 500) return false;
    if (batch.length > 1 && status !== 403) {
      this.limit = Math.ceil(batch.length / 2);
      return true;
    }
    batch[0].attempts = (batch[0].attempts ?? 0) + 1;
    if (status === 500 && batch[0].attempts < ATTEMPTS) return false;
    this.setAside(batch, error.message);
    return true;
  }

  /** An undo of what was not saved would take back an older answer: it is set aside too. */
  setAside(entries, why) {
    const cell = ({ decision }) => JSON.stringify([decision.instance_id, decision.label]);
    const cells = new Set(entries.map(cell));
    const isUndo = (one) => one.decision.verdict === "undo" && cells.has(cell(one));
    const undone = this.waiting.filter((one) => !entries.includes(one) && isUndo(one));
    const gone = [...entries, ...undone];
    this.waiting = this.waiting.filter((one) => !gone.includes(one));
    this.aside.push(...gone.map((entry) => ({ entry, why })));
    this.notify();
  }

  sendAside() {
    this.waiting.push(...this.aside.map(({ entry }) => entry));
    this.aside = [];
    this.send();
  }

  discardAside() {
    this.drop(this.aside.map(({ entry }) => entry));
    this.aside = [];
    this.notify();
  }

  /** Give the answers of an expired token a fresh one. Another person's wait until that person is back. */
  async renew(token) {
    const old = this.waiting.filter((one) => one.token === token);
    try {
      const reply = await post("token", session.token, { token });
      for (const one of old) this.keep(Object.assign(one, { token: reply.token }));
    } catch (error) {
      if (error.status === 401) session.rerun();
      if (error.status !== 403) throw error;
      this.setAside(old, error.message);
    }
  }

  drop(entries) {
    const gone = new Set(entries);
    this.waiting = this.waiting.filter((one) => !gone.has(one));
    this.isKept = canStore(() => entries.forEach(({ slot }) => localStorage.removeItem(slot))) && this.isKept;
  }

  notify() {
    this.dispatchEvent(new Event("change"));
  }
}

/** @returns {Entry[]} */
function readWaiting() {
  try {
    return Object.keys(localStorage)
      .filter((key) => key.startsWith(PREFIX))
      .sort()
      .map((slot) => ({ slot, since: Date.now(), ...JSON.parse(localStorage.getItem(slot) ?? "") }));
  } catch {
    return [];
  }
}
