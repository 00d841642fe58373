// Tables that can be marked. `tables.js` goes before.

const drawn = new WeakMap(); // what a root shows; the default export is called at every rerun

export default function ({ data, parentElement, setTriggerValue }) {
  const box = parentElement.querySelector('[data-part="rows"]');
  const { marked, ...content } = data;
  const now = JSON.stringify(content);
  let shown = drawn.get(box);
  if (shown?.now !== now) {
    drawn.set(box, (shown = { now }));
    const pick = (picked) => shown.send("picked", picked);
    const mark = () => shown.send("marked", marks(box));
    box.replaceChildren(...tables(content, { pick, mark }));
  }
  shown.send = setTriggerValue;
  for (const one of checks(box)) one.checked = marked.includes(Number(one.value));
}

const checks = (box) => [...box.querySelectorAll("input")];
const marks = (box) => checks(box).filter((one) => one.checked).map((one) => Number(one.value));
