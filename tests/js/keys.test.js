import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import * as keys from "../../plain_app/widgets/desk/keys.js";
import { openBrowser } from "./browser.js";

class FakeElement {
  constructor(tagName, { role = null, type, testId } = {}) {
    Object.assign(this, { tagName, role, type, testId, isContentEditable: false });
  }

  getAttribute(name) {
    return name === "role" ? this.role : null;
  }

  matches(selector) {
    return selector === `[data-testid="${this.testId}"]`;
  }
}
const host = new FakeElement("DIV");
const press = (key, path = [], more = {}) => ({ key, composedPath: () => [...path, document], ...more });
const isTaken = (...args) => keys.isTaken(press(...args), host);

beforeEach(() => {
  openBrowser();
  globalThis.Element = FakeElement;
  globalThis.document = { querySelector: () => null };
});

test("every action has a key of its own, and none is reserved", () => {
  const all = Object.values(keys.readKeys()).flat();
  assert.equal(new Set(all).size, all.length);
  for (const [name, [key]] of Object.entries(keys.readKeys())) {
    assert.equal(keys.actionOf(keys.readKeys(), key), name);
    assert.equal(keys.whyNotFree(keys.readKeys(), name, key), "");
  }
});

test("digits mean candidates: 1 the first, 0 the tenth", () => {
  assert.deepEqual(["1", "9", "0", "a", "F1", "12"].map(keys.candidateOf), [0, 8, 9, -1, -1, -1]);
});

test("keys of one's own are kept, and broken ones ignored", () => {
  const own = { ...keys.readKeys(), accept: ["y"] };
  assert.ok(keys.rememberKeys(own));
  assert.deepEqual(keys.readKeys().accept, ["y"]);
  localStorage.setItem("plain.review.keys", '{"accept": [], "reject": [7], "skip": "s"}');
  assert.deepEqual(keys.readKeys().accept, ["a", "Enter"]);
  assert.deepEqual(keys.readKeys().reject, ["x"]);
  localStorage.setItem("plain.review.keys", "not json");
  assert.deepEqual(keys.readKeys().skip, [" "]);
  assert.ok(keys.rememberKeys(null));
  localStorage.isFull = true;
  assert.equal(keys.rememberKeys(own), false);
});

test("a key that is somebody's is not given away", () => {
  const whyNot = (key) => keys.whyNotFree(keys.readKeys(), "accept", key);
  assert.match(whyNot("x"), /already means: Reject all/);
  for (const key of ["r", "C", "Tab", "F5", "7"]) assert.match(whyNot(key), /not free/);
  assert.equal(whyNot("a"), "");
  assert.equal(whyNot("y"), "");
});

test("keys belong to fields, tables, dialogs and pressed buttons, else to the desk", () => {
  assert.equal(isTaken("a"), false);
  assert.equal(isTaken("a", [], { repeat: true }), true);
  assert.equal(isTaken("a", [], { ctrlKey: true }), true);
  assert.equal(isTaken("a", [new FakeElement("INPUT", { type: "text" })]), true);
  assert.equal(isTaken("a", [new FakeElement("INPUT", { type: "checkbox" })]), false);
  assert.equal(isTaken("a", [new FakeElement("DIV", { role: "combobox" })]), true);
  assert.equal(isTaken("a", [new FakeElement("DIV", { testId: "stDataFrame" })]), true);
  const button = new FakeElement("BUTTON");
  assert.equal(isTaken("a", [button]), false);
  assert.equal(isTaken("Enter", [button]), true);
  assert.equal(isTaken("Enter", [new FakeElement("DIV"), host, button]), false, "what is around the desk");
  document.querySelector = (selector) => (selector === '[role="dialog"]' ? new FakeElement("DIV") : null);
  assert.equal(isTaken("a"), true);
});

test("the message that the connection is lost is closed, and the key goes to the desk", () => {
  let closed = 0;
  const dialog = { textContent: "Connection error: ...", querySelector: () => ({ click: () => closed++ }) };
  document.querySelector = (selector) => (selector.includes("stDialog") ? dialog : null);
  assert.equal(isTaken("a"), false);
  assert.equal(closed, 1);
});
