import assert from "node:assert/strict";
import { test } from "node:test";
import { Panel } from "../../plain_app/widgets/sliders/panel.js";
import { openBrowser } from "./browser.js";

/** As much of an element as the panel uses. */
function element() {
  const classes = { toggle() {} };
  return { dataset: {}, style: {}, classList: classes, setAttribute() {}, append() {}, replaceChildren() {} };
}
const slider = (more = {}) => ({ name: "k", label: "k", help: "", stops: ["5", "10", "20"], at: 0, own: 0, ...more });

test("only the latest position is sent, and the next when its answer was drawn", () => {
  openBrowser();
  globalThis.document = { createElement: element };
  const sent = [];
  const panel = new Panel(element());
  panel.send = (name, move) => sent.push(move);
  panel.show({ sliders: [slider()], answered: 0 });
  const { input } = panel.rows.get("k");
  const drag = (at) => {
    input.value = String(at);
    input.oninput();
  };
  drag(1);
  drag(2);
  drag(1);
  assert.deepEqual(
    sent.map((one) => one.places.k),
    [1],
  );
  panel.show({ sliders: [slider({ at: 1 })], answered: sent[0].number - 1 }); // an older answer
  assert.equal(sent.length, 1);
  drag(2);
  panel.show({ sliders: [slider({ at: 1 })], answered: sent[0].number });
  assert.deepEqual(
    sent.map((one) => one.places.k),
    [1, 2],
  );
  assert.ok(sent[1].number > sent[0].number);
  panel.show({ sliders: [slider({ at: 2 })], answered: sent[1].number });
  assert.equal(input.value, "2");
  input.ondblclick();
  assert.equal(sent.at(-1).places.k, 0, "back to where the run had it");
});
