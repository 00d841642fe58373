import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { Outbox } from "../../plain_app/widgets/desk/outbox.js";
import { session } from "../../plain_app/widgets/desk/server.js";
import { decision, openBrowser, serve, serveStore, until } from "./browser.js";

const uids = (decisions) => decisions.map((one) => one.uid);
const range = (n) => Array.from({ length: n }, (_, at) => decision(at));
let server, outboxes;

function openOutbox() {
  outboxes.push(new Outbox());
  return outboxes.at(-1);
}

beforeEach(() => {
  openBrowser();
  [server, outboxes] = [null, []];
});

afterEach(async () => {
  for (const one of outboxes) {
    one.waiting = []; // nothing is sent any more
    clearTimeout(one.timer);
  }
  await server?.close();
});

test("answers are sent in order, once, and forgotten when they are committed", async () => {
  server = await serveStore();
  const outbox = openOutbox();
  for (const one of range(250)) outbox.add("t", [one]);
  await until(() => !outbox.waiting.length && !outbox.isSending);
  assert.deepEqual(uids(server.stored), uids(range(250)));
  assert.deepEqual(Object.keys(localStorage), []);
  assert.ok(server.requests.length < 10, "answers given meanwhile travel together");
});

test("an answer is kept before it is sent, and sent after a reload", async () => {
  openOutbox().add("t", range(12));
  assert.equal(Object.keys(localStorage).length, 12);
  outboxes[0].waiting = []; // the page is gone
  server = await serveStore();
  const again = openOutbox();
  again.send();
  await until(() => !again.waiting.length);
  assert.deepEqual(uids(server.stored), uids(range(12)));
  assert.equal(server.requests[0].token, "t");
  openOutbox().send();
  assert.equal(outboxes.at(-1).waiting.length, 0);
});

test("answers given while the server is away are sent when the network is back", async () => {
  const outbox = openOutbox();
  outbox.add("t", range(2));
  await until(() => outbox.trouble);
  assert.ok(outbox.isLate);
  outbox.add("t", [decision("later")]);
  await until(() => !outbox.isSending);
  server = await serveStore();
  window.dispatchEvent(new Event("online"));
  await until(() => !outbox.waiting.length && !outbox.isSending);
  assert.deepEqual(uids(server.stored), ["0", "1", "later"]);
  assert.equal(outbox.trouble, "");
});

test("without an event it tries again by itself, and the answer tells its age", async () => {
  const outbox = openOutbox();
  outbox.add("t", range(1));
  await until(() => outbox.trouble);
  server = await serveStore();
  await until(() => !outbox.waiting.length);
  assert.ok(server.stored[0].age > 0);
});

test("what the server cannot commit now stays; what it saved of a batch does not come twice", async () => {
  let isDown = true;
  server = await serve((route, { decisions }) => {
    if (isDown) return [503, { error: "the disk is full" }];
    return [200, { saved: uids(decisions), refused: [] }];
  });
  const outbox = openOutbox();
  outbox.add("t", range(3));
  await until(() => outbox.trouble);
  assert.equal(Object.keys(localStorage).length, 3);
  isDown = false;
  await until(() => !outbox.waiting.length);
  assert.equal(new Set(uids(server.requests.at(-1).body.decisions)).size, 3);
});

test("a request that is too large is sent in parts, in order", async () => {
  const stored = [];
  server = await serve((route, { decisions }) => {
    if (decisions.length > 3) return [413, { error: "too large" }];
    stored.push(...decisions);
    return [200, { saved: uids(decisions), refused: [] }];
  });
  const outbox = openOutbox();
  outbox.add("t", range(20));
  await until(() => !outbox.waiting.length);
  assert.deepEqual(uids(stored), uids(range(20)));
  assert.deepEqual(outbox.aside, []);
});

for (const status of [413, 422, 500])
  test(`one answer that makes the server say ${status} is set aside, the others get through`, async () => {
    const stored = [];
    server = await serve((route, { decisions }) => {
      if (decisions.some((one) => one.uid === "3")) return [status, { error: "not this one" }];
      stored.push(...decisions);
      return [200, { saved: uids(decisions), refused: [] }];
    });
    const outbox = openOutbox();
    outbox.add("t", range(8));
    for (let left = 400; outbox.waiting.length && left; left--) {
      await new Promise((done) => setTimeout(done, 5));
      if (!outbox.isSending) outbox.send(); // does not wait for its own pauses
    }
    assert.deepEqual(uids(stored), ["0", "1", "2", "4", "5", "6", "7"]);
    assert.deepEqual(
      outbox.aside.map(({ entry, why }) => [entry.decision.uid, why]),
      [["3", "not this one"]],
    );
    assert.equal(Object.keys(localStorage).length, 1, "the browser keeps it");
  });

test("a refused answer takes its undo along, and both can be sent again or discarded", async () => {
  let isRefused = true;
  server = await serve((route, { decisions }) => {
    const refused = isRefused ? decisions.filter((one) => one.uid === "0") : [];
    const saved = uids(decisions).filter((uid) => !uids(refused).includes(uid));
    return [200, { saved, refused: refused.map(({ uid }) => ({ uid, why: "unknown label" })) }];
  });
  const outbox = openOutbox();
  const undo = decision("undo", { instance_id: "i0", verdict: "undo" });
  outbox.limit = 1;
  outbox.add("t", [decision(0), undo, decision(1)]);
  await until(() => !outbox.waiting.length);
  const aside = () => outbox.aside.map(({ entry }) => entry.decision.uid);
  assert.deepEqual(aside(), ["0", "undo"]);
  isRefused = false;
  outbox.sendAside();
  await until(() => !outbox.waiting.length);
  assert.deepEqual(aside(), []);
  outbox.setAside([{ slot: "plain.answer.1", decision: decision(9) }], "why");
  outbox.discardAside();
  assert.deepEqual(Object.keys(localStorage), []);
});

test("an expired token is renewed; another person's answers are set aside", async () => {
  server = await serve((route, body, headers) => {
    const token = headers["x-plain-token"];
    if (route === "token") return body.token === "old" ? [200, { token: "new" }] : [403, { error: "not yours" }];
    if (token !== "new") return [401, { error: "expired" }];
    return [200, { saved: uids(body.decisions), refused: [] }];
  });
  session.token = "fresh";
  const outbox = openOutbox();
  outbox.add("old", [decision(0)]);
  outbox.add("hers", [decision(1)]);
  await until(() => !outbox.waiting.length);
  assert.deepEqual(
    outbox.aside.map(({ entry }) => entry.decision.uid),
    ["1"],
  );
  assert.ok(outbox.hasSaved);
});

test("a browser that keeps nothing says so, and sends all the same", async () => {
  localStorage.isFull = true;
  server = await serveStore();
  const outbox = openOutbox();
  outbox.add("t", range(1));
  assert.equal(outbox.isKept, false);
  await until(() => !outbox.waiting.length);
  assert.equal(server.stored.length, 1);
});
