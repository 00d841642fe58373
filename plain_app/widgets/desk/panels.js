// What is laid over the question: the list of keys, and what an answer would move.
import { button, make, percent } from "../elements.js";
import { ACTIONS, keyName } from "./keys.js";

/** @param {import("./view.js").View} view */
export function drawPanel(view) {
  const panel = view.part("panel");
  panel.hidden = !view.panel;
  if (view.panel === "help") panel.replaceChildren(...keyList(view));
  if (view.panel === "preview") panel.replaceChildren(...effect(view.previewed));
}

function keyList(view) {
  const list = make("div", "keys");
  const line = (text, keys, note, change) =>
    list.append(make("span", "", text), make("kbd", "", keys), make("span", "", note), change);
  line("Keep or reject a candidate", "1…9 0", "", make("span"));
  for (const [name, { text }] of Object.entries(ACTIONS)) {
    const change = button("change", "Press the key you want", () => view.learnKey(name));
    change.setAttribute("aria-label", `Change the key for: ${text}`);
    line(text, view.keys[name].map(keyName).join("  "), view.learning === name ? "press a key …" : "", change);
  }
  return [make("h4", "", "Keys"), list, button("Keys as they came", "", () => view.setKeys(null))];
}

/** @param {import("./types").DecisionEffect | null} found */
function effect(found) {
  if (!found) return [make("p", "", "Looking …")];
  const title = make("h4", "", `${found.verdict === "keep" ? "Keeping" : "Rejecting"} “${found.cell.label}” here`);
  if (found.error) return [title, make("p", "", found.error)];
  const text = found.total
    ? `would move ${found.total.toLocaleString()} other ${found.total === 1 ? "cell" : "cells"}, settle ${found.settles.toLocaleString()}:`
    : "would move no other cell.";
  const list = make("div", "moves");
  for (const { title: name, label, before, after } of found.moved) {
    const change = `${percent(before)} → ${percent(after)}`;
    list.append(make("span", "", name), make("span", "", label), make("span", "number", change));
  }
  return [title, make("p", "", text), list];
}
