// Says what became of the answers: on their way, saved, not taken; and what the last one was.
import { button, make, percent } from "../elements.js";

const LISTED = 6; // decisions of the last answer that are named

/** @param {import("./outbox.js").Outbox} outbox */
function statusOf({ waiting, aside, trouble, isLate, isKept, hasSaved }) {
  const n = waiting.length;
  const kept = isKept ? "kept in this browser, sent as soon as it can be" : "do not close this page";
  if (isLate) return ["unsaved", `⚠ ${n} not saved${trouble ? ` (${trouble})` : ""}: ${kept}`];
  if (n) return [aside.length ? "refused" : "saving", `saving ${n} …`];
  if (aside.length) return ["refused", `⚠ ${aside.length} not taken`];
  return ["saved", hasSaved ? "✓ all saved" : ""];
}

/** @param {import("./view.js").View} view */
export function drawStatus({ part, outbox, queue, note }) {
  const [state, text] = statusOf(outbox);
  const status = part("status");
  status.dataset.state = state;
  status.dataset.waiting = String(outbox.waiting.length);
  status.textContent = text;
  part("desk").classList.toggle("unsaved", outbox.isLate);
  drawAside(part("aside"), outbox);
  part("last").replaceChildren(...(note ? [make("span", "note", note)] : lastAnswer(queue, outbox)));
}

/** Say which answers could not be saved, and what can be done about it. */
function drawAside(line, outbox) {
  const { aside } = outbox;
  line.hidden = !aside.length;
  const last = aside.at(-1);
  const { instance_id, label, verdict } = last?.entry.decision ?? {};
  const text = `${aside.length} not taken, kept in this browser. The last, ${instance_id} · ${label} ${verdict}: ${last?.why}`;
  if (line.dataset.text === text) return; // a button that is being pressed stays
  line.dataset.text = text;
  line.replaceChildren(
    make("span", "", text),
    button("Send again", "Try to save them once more", () => outbox.sendAside()),
    button("Discard", "Forget these answers", () => outbox.discardAside()),
  );
}

function lastAnswer({ answers }, outbox) {
  const last = answers.at(-1); // that was not taken back
  if (!last) return [];
  const { item, decisions } = last;
  const parts = decisions.slice(0, LISTED).map((one) => {
    const isSaved = !outbox.isWaiting(one.uid);
    const name = item.kind === "same" ? one.instance_id : one.label; // the other stands in the title
    const box = make("span", "said", `${name} ${one.verdict} ${shownWith(item, one)} `);
    box.append(make("b", isSaved ? "tick" : "", isSaved ? "✓" : "…"));
    return box;
  });
  if (decisions.length > LISTED) parts.push(make("span", "said", `and ${decisions.length - LISTED} more`));
  return [make("span", "", `${item.title}: `), ...parts];
}

/** The confidence that was shown with an answer, or what was kept from the person until it. */
function shownWith(item, { instance_id, label, verdict, confidence, shown }) {
  if (shown) return percent(confidence);
  const cell = item.cells.find((one) => one.id === instance_id && one.label === label);
  const proposed = cell?.proposed === verdict ? "so is the proposal" : `the proposal is ${cell?.proposed}`;
  const before = cell?.before ? `, you said ${cell.before} before` : "";
  return `(${proposed}, ${percent(confidence)}${before})`;
}
