// A choice of its own; `names.js` goes before.
export default function ({ data, parentElement, setTriggerValue }) {
  const box = parentElement.querySelector(".plain-switch");
  showChoice(box, data, (name) => setTriggerValue("chosen", name));
}
