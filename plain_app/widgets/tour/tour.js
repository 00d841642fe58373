// The guided tour: a card that goes from stop to stop, and a frame around what it speaks of.
// `localStorage` knows that it was seen, `sessionStorage` where it is.
import { button, make } from "../elements.js";

const SEEN = "plain.tour";
const AT = "plain.tour.at";
const WAIT = 20000; // milliseconds for what a stop shows to appear
let [stops, style] = [[], ""];
let screen = /** @type {any} */ (null);
let visit = 0;

export default function ({ data, parentElement, setTriggerValue }) {
  [stops, style] = [data.stops, data.style];
  parentElement.querySelector('[data-part="start"]').onclick = () => {
    if (!data.is_demo) setTriggerValue("wanted", true);
    go(0);
  };
  if (!data.is_demo || screen) return;
  const at = sessionStorage.getItem(AT);
  if (at !== null) go(Number(at));
  else if (!localStorage.getItem(SEEN) && isOn("Data")) invite();
}

function invite() {
  open();
  tell("New here?", "A tour of the program on this demo data takes less than two minutes.", [
    ["No, thanks", end],
    ["Take the tour", () => go(0)],
  ]);
}

function end() {
  localStorage.setItem(SEEN, "seen");
  sessionStorage.removeItem(AT);
  visit++;
  screen?.host.remove();
  screen = null;
}

async function go(at) {
  const mine = ++visit;
  const stop = stops[at];
  sessionStorage.setItem(AT, at);
  open();
  const last = at === stops.length - 1;
  tell(stop.title, stop.text, [
    ["End", end],
    ...(at ? [["Back", () => go(at - 1)]] : []),
    [last ? "Done" : "Next", () => (last ? end() : go(at + 1))],
  ]);
  screen.count.textContent = `${at + 1} of ${stops.length}`;
  screen.outline.textContent = "";
  const isMine = () => mine === visit;
  if (!isOn(stop.page)) {
    (await appears(() => linkTo(stop.page), isMine))?.click();
    await appears(() => isOn(stop.page), isMine);
  }
  if (stop.press) {
    const press = () => pressed(find(stop.press), stop.named);
    await appears(() => find(stop.target) ?? press(), isMine);
    if (isMine() && !find(stop.target)) press()?.click();
  }
  const target = await appears(() => find(stop.target), isMine);
  if (!isMine()) return;
  target?.scrollIntoView({ block: "center" });
  screen.outline.textContent = `${stop.target} { outline: 2px solid #d08a3e; outline-offset: 4px; }`;
}

const find = (selector) => [...document.querySelectorAll(selector || "none")].find((one) => one.offsetParent) ?? null;
/** What is pressed of a widget: its button, or of several names the one that is called so. */
const pressed = (widget, name) =>
  [...(widget?.querySelectorAll(name ? "p" : "button") ?? [])].find((one) => !name || one.textContent.trim() === name);
const linkTo = (page) =>
  [...document.querySelectorAll(".st-key-frame-steps a")].find((one) => one.textContent?.trim().endsWith(page));
const isOn = (page) => {
  const path = location.pathname.split("/").pop();
  return path === page.toLowerCase() || (page === "Data" && path === "");
};

async function appears(look, isMine) {
  for (const until = Date.now() + WAIT; Date.now() < until && isMine();) {
    const found = look();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 100));
  }
  return null;
}

/** Make the card, once. Texts are set as text. */
function open() {
  if (screen) return;
  const host = make("div");
  const root = host.attachShadow({ mode: "open" });
  const [card, foot] = [make("div", "card"), make("div", "foot")];
  const outline = make("style"); // of the page, not of the card: it frames what the stop shows, wherever that moves
  const [title, text, count, buttons] = [make("strong"), make("p"), make("span"), make("span", "buttons")];
  card.setAttribute("role", "dialog");
  card.setAttribute("aria-label", "Tour");
  foot.append(count, buttons);
  card.append(title, text, foot);
  root.append(make("style", "", style), card);
  host.append(outline);
  host.addEventListener("keydown", (event) => event.key === "Escape" && end());
  document.body.append(host);
  screen = { host, outline, card, title, text, count, buttons };
}

function tell(title, text, actions) {
  const page = getComputedStyle(find('[data-testid="stApp"]') ?? document.body);
  screen.card.style.cssText = `background: ${page.backgroundColor}; color: ${page.color}; font-family: ${page.fontFamily}`;
  screen.title.textContent = title;
  screen.text.textContent = text;
  screen.count.textContent = "";
  const made = actions.map(([name, act]) => button(name, "", act));
  screen.buttons.replaceChildren(...made);
  made.at(-1).className = "main";
  made.at(-1).focus({ preventScroll: true });
}
