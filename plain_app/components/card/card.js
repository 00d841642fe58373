// One instance. `tables.js` and `names.js` go before. Only parts that changed are drawn again, so
// what has the focus keeps it.

const cards = new WeakMap(); // by root; the default export is called at every rerun

export default function ({ data, parentElement, setTriggerValue }) {
  let card = cards.get(parentElement);
  if (!card) cards.set(parentElement, (card = createCard(parentElement)));
  card.tell = (what, value) => setTriggerValue("did", [what, value]);
  card.show(data);
}

function createCard(root) {
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const card = { tell: () => {}, show };
  const shown = {};

  const instance = part("instance");
  instance.onchange = () => card.tell("write", instance.value);
  for (const one of root.querySelectorAll("[data-step]"))
    one.onclick = () => card.tell("step", Number(one.dataset.step));
  part("picture").onload = ({ target }) => target.classList.toggle("tiny", target.naturalWidth < 64);
  part("review").onclick = () => card.tell("review", true);

  function show(data) {
    changed(data.instance, "instance", (text) => (instance.value = text));
    instance.placeholder = data.first;
    part("review").hidden = !data.can_review;
    for (const name of ["problem", "text"]) {
      part(name).textContent = data[name];
      part(name).hidden = !data[name];
    }
    changed(data.picture, "picture", showPicture);
    for (const name of ["above", "below"]) changed(data[name], name, (group) => showTables(name, group));
    showChoices(data.choices);
    tellMap(data.marks);
  }

  function changed(value, name, draw) {
    const now = JSON.stringify(value);
    if (shown[name] === now) return;
    shown[name] = now;
    draw(value);
  }

  function showPicture(picture) {
    const isOne = picture?.startsWith("data:image/");
    part("picture").hidden = !isOne;
    if (isOne) part("picture").src = picture;
  }

  function showTables(name, group) {
    part(name).replaceChildren(...tables(group, { pick: (picked) => card.tell(name, picked) }));
  }

  function showChoices(choices) {
    const box = part("choices");
    while (box.children.length < choices.length) box.append(make("div", "plain-switch"));
    while (box.children.length > choices.length) box.lastChild.remove();
    choices.forEach((one, at) => {
      showChoice(box.children[at], one, (name) => card.tell("choose", [one.label, name]));
    });
  }
  return card;
}

/** Only what is new is told: the same may have been changed by hand since. */
function tellMap(marks) {
  if (!marks || JSON.stringify(marks) === JSON.stringify(window.plainMapMarks)) return;
  window.plainMapMarks = marks;
  window.dispatchEvent(new CustomEvent("plain-map-marks", { detail: marks }));
}
