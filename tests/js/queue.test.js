import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { Queue, verdictsOf } from "../../plain_app/widgets/desk/queue.js";
import { openBrowser } from "./browser.js";

const cell = (more = {}) => ({ id: "i", label: "cat", confidence: 0.9, proposed: "keep", asked: true, ...more });
const question = (key, more = {}) => ({ kind: "one", key, ids: [key], cells: [cell({ id: key })], ...more });
let sent, queue;

beforeEach(() => {
  openBrowser();
  sent = [];
  const outbox = { waiting: [], add: (token, decisions) => sent.push(...decisions) };
  queue = new Queue({ token: "t", scope: "s", blind: false, query: { order: "worth" } }, outbox);
  queue.fetchMore = () => {}; // nobody answers
  take(["a", "b", "c"]);
});

function take(keys, { lost = [], start = performance.now(), ...more } = {}) {
  const kept = queue.items.slice(queue.at, queue.at + 2).filter((one) => !one.doneAt);
  queue.takeOver({ items: keys.map((key) => question(key, more)), lost }, kept, start);
}
const keys = () => queue.items.map((one) => one.key);

test("an answer goes out once with what was shown, and the next question comes", () => {
  queue.answer(["keep"]);
  assert.equal(queue.item.key, "b");
  const [{ instance_id, verdict, confidence, shown }] = sent;
  assert.deepEqual([instance_id, verdict, confidence, shown], ["a", "keep", 0.9, true]);
  queue.goTo(0);
  queue.answer(["keep"]); // the same again says nothing new
  assert.equal(sent.length, 1);
});

test("undo takes the last answer back and returns to its question", () => {
  queue.answer(["keep"]);
  queue.answer(["reject"]);
  assert.ok(queue.undo());
  assert.equal(queue.item.key, "b");
  assert.equal(queue.item.cells[0].decided, null);
  assert.deepEqual([sent.at(-1).verdict, sent.at(-1).instance_id], ["undo", "b"]);
  assert.ok(queue.undo());
  assert.equal(queue.undo(), false);
});

test("a new order keeps what is looked at, drops the rest and gives it back", () => {
  take(["d", "a", "e"]);
  assert.deepEqual(keys(), ["a", "b", "d", "e"]);
  assert.equal(queue.item.key, "a");
  assert.deepEqual(queue.dropped, ["c"]);
});

test("what was answered after it was asked for does not come again; what others have goes", () => {
  const start = performance.now() - 1000;
  queue.answer(["keep"]);
  take(["a", "d"], { start, lost: ["b"] });
  assert.deepEqual(keys(), ["a", "c", "d"]);
  assert.equal(queue.item.key, "c");
});

test("a skipped question is not asked again here", () => {
  queue.skip();
  assert.equal(queue.item.key, "b");
  assert.equal(sent.length, 0);
  assert.ok(queue.items[0].isSkipped);
});

test("blind questions propose nothing and hide until they are answered", () => {
  take(["x"], { blind: true });
  const item = queue.items.at(-1);
  assert.equal(item.cells[0].verdict, null);
  assert.ok(queue.isHidden(item));
  queue.goTo(queue.items.length - 1);
  queue.answer(["reject"]);
  assert.equal(sent[0].shown, false);
  assert.ok(!queue.isHidden(item));
});

test("what Accept and Reject all say of each cell", () => {
  const cells = [
    cell({ verdict: "keep" }),
    cell({ verdict: "reject" }),
    cell({ verdict: null, asked: false }),
    cell({ verdict: "unsure", asked: false, isTouched: true }),
  ];
  assert.deepEqual(verdictsOf("accept", cells, false, false), ["keep", "reject", null, "unsure"]);
  assert.deepEqual(verdictsOf("reject", cells, false, false), ["reject", "reject", null, "reject"]);
  const untouched = [cell({ verdict: null }), cell({ verdict: null, asked: false })];
  assert.equal(verdictsOf("accept", untouched, false, true), null);
  untouched[1].verdict = "keep";
  assert.deepEqual(verdictsOf("accept", untouched, false, true), ["reject", "keep"]);
  assert.deepEqual(verdictsOf("reject", [cell({ verdict: null })], true, false), [null]);
});

test("a server that does not answer is asked again after ever longer pauses", async (t) => {
  const pauses = [];
  let now = performance.now();
  t.mock.method(Math, "random", () => 0.5);
  t.mock.method(performance, "now", () => now);
  const asked = t.mock.method(globalThis, "fetch", () => Promise.reject(new TypeError("away")));
  t.mock.method(globalThis, "setTimeout", (_, pause) => pauses.push(pause));
  delete queue.fetchMore; // the real one
  for (let at = 0; at < 8; at++) {
    await queue.fetchMore();
    await queue.fetchMore(); // a key was pressed: not before the pause is over
    now += pauses.at(-1);
  }
  assert.equal(asked.mock.callCount(), 8);
  assert.deepEqual(pauses, [501, 1001, 2001, 4001, 8001, 16001, 30001, 30001]);
});
