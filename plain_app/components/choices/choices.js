// Lists to choose from, and fields to write in with what is known to choose from. Names are data:
// drawn as text, never as markup.

const shown = new WeakMap(); // the fields of a box; the default export is called at every rerun

export default function ({ data, parentElement, setTriggerValue }) {
  const box = parentElement.querySelector(".choices");
  const names = JSON.stringify(data.map(({ name, can_write, is_fixed }) => [name, can_write, is_fixed]));
  if (shown.get(box)?.names !== names) {
    const fields = data.map(createField);
    box.replaceChildren(...fields.map(({ whole }) => whole));
    shown.set(box, { names, fields });
  }
  shown.get(box).fields.forEach((field, at) => {
    field.tell = (value) => setTriggerValue("chosen", [data[at].name, value]);
    field.show(data[at]);
  });
}

function make(tag, text, properties) {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  return Object.assign(element, properties);
}

function createField({ label, can_write, is_fixed }) {
  const isText = can_write || is_fixed;
  const entry = make(isText ? "input" : "select", "", { className: "entry", disabled: is_fixed });
  const [title, note] = [make("label", label), make("p", "", { className: "about" })];
  const [known, clear] = [make("datalist", "", { id: `known-${label}` }), make("button", "×")];
  Object.assign(clear, { type: "button", className: "clear", ariaLabel: `Clear ${label}`, hidden: true });
  const line = make("div", "", { className: "line" });
  title.append(line);
  line.append(entry);
  if (can_write && !is_fixed) {
    entry.setAttribute("list", known.id);
    line.append(known, clear);
  }
  const whole = make("div", "", { className: "choice" });
  whole.append(title, note);
  const field = { whole, told: "", show };
  const choose = (value) => {
    if (value === field.told) return;
    field.told = value;
    field.tell(value);
  };
  entry.onchange = () => choose(entry.value.trim());
  entry.oninput = ({ inputType }) => {
    if (isText && (!inputType || inputType === "insertReplacementText")) choose(entry.value.trim());
  };
  clear.onclick = () => choose((entry.value = ""));

  function show({ options, chosen, note: text, help, placeholder, is_fixed: isFixed }) {
    const listed = JSON.stringify(options);
    if (field.listed !== listed) {
      field.listed = listed;
      const each = options.map(([value, name]) => make("option", isText ? "" : name, { value }));
      (isText ? known : entry).replaceChildren(...each);
      if (!isText && !options.length) entry.append(make("option", placeholder, { value: "" }));
    }
    field.told = chosen;
    const isWriting = isText && whole.getRootNode().activeElement === entry && entry.value.trim() !== chosen;
    if (!isWriting) entry.value = chosen;
    entry.disabled = isFixed || (!isText && !options.length);
    if (isText) Object.assign(entry, { placeholder, maxLength: 80, autocomplete: "off" });
    entry.title = help;
    note.textContent = text;
    clear.hidden = !chosen;
  }
  return field;
}
