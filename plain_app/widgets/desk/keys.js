// What each key does, keys of a person's own choice, and key presses that belong to something else.
/** @import { Keys } from "./types" */
import { canStore } from "./storage.js";

const KEYS = "plain.review.keys"; // localStorage: keys of this person's own choice

/** @type {Record<string, { text: string, keys: string[], button?: string }>} */
export const ACTIONS = {
  accept: { text: "Accept what is shown, go on", keys: ["a", "Enter"], button: "Accept" },
  reject: { text: "Reject all, go on", keys: ["x"], button: "Reject all" },
  skip: { text: "Skip", keys: [" "], button: "Skip" },
  undo: { text: "Undo the last answer", keys: ["u", "Backspace"], button: "Undo" },
  next: { text: "Next question", keys: ["ArrowRight"] },
  back: { text: "Previous question", keys: ["ArrowLeft"] },
  down: { text: "Next candidate", keys: ["ArrowDown"] },
  up: { text: "Previous candidate", keys: ["ArrowUp"] },
  toggle: { text: "Change the marked candidate", keys: ["t"] },
  keep: { text: "Keep the marked candidate", keys: ["k"] },
  drop: { text: "Reject the marked candidate", keys: ["n"] },
  unsure: { text: "Unsure about the marked candidate", keys: ["m"] },
  preview: { text: "What would move", keys: ["p"], button: "What would move" },
  why: { text: "Why this confidence", keys: ["e"], button: "Why" },
  zoom: { text: "Look closer at the picture", keys: ["z"], button: "Zoom" },
  help: { text: "All keys", keys: ["?"], button: "Keys" },
};
const RESERVED = ["r", "c", "R", "C", "Tab", "Escape"]; // Streamlit's, the browser's, ours
const ARROWS = { ArrowRight: "→", ArrowLeft: "←", ArrowUp: "↑", ArrowDown: "↓" };
const KEY_NAMES = { " ": "space", Backspace: "⌫", Enter: "⏎", ...ARROWS };

/** @returns {string} */
export const keyName = (key) => KEY_NAMES[key] ?? key;

/** @returns {Keys} */
export function readKeys() {
  let own = {};
  try {
    own = JSON.parse(localStorage.getItem(KEYS) ?? "null") ?? {};
  } catch {
    // not ours, or a browser that keeps nothing
  }
  const isUsable = (keys) => Array.isArray(keys) && keys.length && keys.every((one) => typeof one === "string");
  const keysOf = ([name, { keys }]) => [name, isUsable(own[name]) ? own[name] : keys];
  return Object.fromEntries(Object.entries(ACTIONS).map(keysOf));
}

/** Keep keys of a person's own choice, or forget them; whether this browser does. */
export const rememberKeys = (keys) =>
  canStore(() => (keys ? localStorage.setItem(KEYS, JSON.stringify(keys)) : localStorage.removeItem(KEYS)));

/** The action of a key, if it has one. */
export const actionOf = (keys, key) => Object.keys(keys).find((name) => keys[name].includes(key));

/** Which candidate a digit means: 1 is the first, 0 the tenth; -1 for other keys. */
export const candidateOf = (key) => (/^[0-9]$/.test(key) ? (Number(key) + 9) % 10 : -1);

/** Why a key cannot be given to an action; empty if it can. */
export function whyNotFree(keys, name, key) {
  if (RESERVED.includes(key) || /^F\d|^[0-9]$/.test(key)) return `${keyName(key)} is not free.`;
  const other = actionOf({ ...keys, [name]: [] }, key);
  return other ? `${keyName(key)} already means: ${ACTIONS[other].text}.` : "";
}

/** The desk goes on without the server and says so itself: Streamlit's message would only cover it. */
export function closeConnectionError() {
  const dialog = document.querySelector('[data-testid="stDialog"]');
  if (!dialog?.textContent?.startsWith("Connection error")) return false;
  /** @type {HTMLElement | null} */ (dialog.querySelector('button[aria-label="Close"]'))?.click();
  return true;
}

/**
 * Whether a key press belongs to something else: a field, a dialog, a table, a focused button.
 * @param {KeyboardEvent} event
 */
export function isTaken(event, root) {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return true;
  if (closeConnectionError()) return false;
  if (document.querySelector('[role="dialog"]')) return true;
  const path = event.composedPath();
  const inside = path.indexOf(root);
  const elements = inside < 0 ? path : path.slice(0, inside);
  return elements.some((one) => one instanceof Element && takes(one, event.key));
}

function takes(element, key) {
  const role = element.getAttribute("role") ?? "";
  const isField = /^(input|textarea|select)$/i.test(element.tagName) || element.isContentEditable;
  if (isField && !/^(checkbox|radio|button)$/i.test(element.type ?? "")) return true;
  if (/^(listbox|option|combobox|textbox|slider|grid|menu|menuitem)$/.test(role)) return true;
  if (element.matches('[data-testid="stDataFrame"]')) return true;
  const isPressable = /^(button|a|summary|input)$/i.test(element.tagName) || /^(tab|radio)$/.test(role);
  return isPressable && (key === "Enter" || key === " " || key.startsWith("Arrow"));
}
