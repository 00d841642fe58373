// The guided tour: a card that goes from stop to stop, and a frame around what it speaks of.
// `localStorage` knows that it was seen, `sessionStorage` where it is.

const SEEN = "plain.tour";
const AT = "plain.tour.at";
const WAIT = 20000; // milliseconds for what a stop shows to appear
let stops = [];
let screen = null;
let visit = 0;
let framing = 0;

export default function ({ data, parentElement, setTriggerValue }) {
  stops = data.stops;
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
  frame(null);
  const isMine = () => mine === visit;
  if (!isOn(stop.page)) {
    const link = await appears(() => linkTo(stop.page), isMine);
    link?.click();
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
  frame(stop.target);
}

const find = (selector) =>
  [...document.querySelectorAll(selector || "none")].find((one) => one.offsetParent) ?? null;
/** What is pressed of a widget: its button, or of several names the one that is called so. */
const pressed = (widget, name) =>
  [...(widget?.querySelectorAll(name ? "p" : "button") ?? [])].find(
    (one) => !name || one.textContent.trim() === name,
  ) ?? null;
const links = () => [...document.querySelectorAll(".st-key-frame-steps a")];
const linkTo = (page) => links().find((one) => one.textContent.trim().endsWith(page)) ?? null;
const isOn = (page) => {
  const path = location.pathname.split("/").pop();
  return path === page.toLowerCase() || (page === "Data" && path === "");
};

async function appears(look, isMine) {
  for (const until = Date.now() + WAIT; Date.now() < until && isMine(); ) {
    const found = look();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 100));
  }
  return null;
}

/** Make the card, once. Texts are set as text. */
function open() {
  if (screen) return;
  const host = document.createElement("div");
  const root = host.attachShadow({ mode: "open" });
  const make = (tag, kind, inside = root) => {
    const element = document.createElement(tag);
    element.className = kind;
    inside.append(element);
    return element;
  };
  make("style", "").textContent = STYLE;
  const ring = make("div", "ring");
  const card = make("div", "card");
  card.setAttribute("role", "dialog");
  card.setAttribute("aria-label", "Tour");
  const title = make("strong", "", card);
  const text = make("p", "", card);
  const foot = make("div", "foot", card);
  const count = make("span", "", foot);
  const buttons = make("span", "buttons", foot);
  host.addEventListener("keydown", (event) => event.key === "Escape" && end());
  document.body.append(host);
  screen = { host, ring, card, title, text, count, buttons };
}

function tell(title, text, actions) {
  const style = getComputedStyle(document.querySelector('[data-testid="stApp"]'));
  screen.card.style.background = style.backgroundColor;
  screen.card.style.color = style.color;
  screen.card.style.fontFamily = style.fontFamily;
  screen.title.textContent = title;
  screen.text.textContent = text;
  screen.count.textContent = "";
  const made = actions.map(([name, act]) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.onclick = act;
    return button;
  });
  screen.buttons.replaceChildren(...made);
  made.at(-1).className = "main";
  made.at(-1).focus({ preventScroll: true });
}

/** Keep the frame around what the stop shows, wherever that moves. */
function frame(selector) {
  const mine = ++framing;
  const follow = () => {
    if (!screen || mine !== framing) return;
    const box = selector && find(selector)?.getBoundingClientRect();
    screen.ring.style.display = box ? "block" : "none";
    if (box) {
      const [left, top] = [box.left - 6, box.top - 6];
      screen.ring.style.transform = `translate(${left}px, ${top}px)`;
      screen.ring.style.width = `${box.width + 12}px`;
      screen.ring.style.height = `${box.height + 12}px`;
    }
    setTimeout(follow, 150);
  };
  follow();
}

const STYLE = `
.ring { position: fixed; left: 0; top: 0; z-index: 999990; pointer-events: none; display: none;
  border: 2px solid #d08a3e; border-radius: 8px; box-shadow: 0 0 0 4px #d08a3e33; }
.card { position: fixed; right: 24px; bottom: 24px; z-index: 999991; width: 330px; padding: 16px;
  border: 1px solid #8a8f9866; border-radius: 8px; box-shadow: 0 6px 24px #0003; font-size: 14px;
  line-height: 1.45; }
p { margin: 6px 0 14px; }
.foot { display: flex; justify-content: space-between; align-items: center; }
.foot > span:first-child { opacity: 0.6; font-size: 12px; }
.buttons { display: flex; gap: 8px; margin-left: auto; }
button { font: inherit; color: inherit; background: none; border: 1px solid #8a8f9888;
  border-radius: 6px; padding: 4px 12px; cursor: pointer; }
button.main { background: #2f6f73; border-color: #2f6f73; color: #fff; }
button:focus-visible { outline: 2px solid #d08a3e; outline-offset: 2px; }
`;
