// Things to choose, in one box. Names are data: drawn as text, never as markup.

const shown = new WeakMap(); // the fields of a box; the default export is called at every rerun

export default function ({ data: { choices, side_by_side, has_titles }, parentElement, setTriggerValue }) {
  const box = parentElement.querySelector(".choices");
  box.classList.toggle("beside", side_by_side);
  box.classList.toggle("untitled", !has_titles);
  const names = JSON.stringify(choices.map(({ name, kind, is_fixed }) => [name, kind, is_fixed]));
  if (shown.get(box)?.names !== names) {
    const fields = choices.map(createField);
    box.replaceChildren(...fields.map(({ whole }) => whole));
    shown.set(box, { names, fields });
  }
  shown.get(box).fields.forEach((field, at) => {
    field.tell = (value) => setTriggerValue("chosen", [choices[at].name, value]);
    field.show(choices[at]);
  });
}

function make(tag, text, properties) {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  return Object.assign(element, properties);
}

/** A choice with its title and note; its kind makes what is in between. */
function createField(choice) {
  const isGroup = ["buttons", "pills", "several"].includes(choice.kind); // not one thing to focus
  const [title, name] = [make(isGroup ? "div" : "label"), make("span", choice.label, { className: "title" })];
  const whole = make("div", "", { className: `choice ${choice.kind}` });
  const [line, note] = [make("div", "", { className: "line" }), make("p", "", { className: "about" })];
  if (isGroup) Object.assign(line, { role: "group", ariaLabel: choice.label });
  title.append(name, line);
  whole.append(title, note);
  if (choice.width) whole.style.width = `${choice.width}px`;
  const field = { whole };
  const show = kinds[choice.kind](line, choice, {
    tell: (value) => field.tell(value),
    isIn: (entry) => whole.getRootNode().activeElement === entry,
  });
  field.show = (now) => {
    whole.title = now.help;
    name.textContent = now.label;
    note.textContent = now.note;
    show(now);
  };
  return field;
}

/** What does something for options only when they are others than before. */
function onOthers(act) {
  let before;
  return (options) => {
    const now = JSON.stringify(options);
    if (now !== before) act(options);
    before = now;
  };
}

const entry = (line, { label: ariaLabel }, properties, tag = "input") => {
  const made = make(tag, "", { className: "entry", ariaLabel, ...properties });
  line.append(made);
  return made;
};

const choosable = ([value, name]) => make("option", name, { value });

/** Names to press in a row; `press` is told what is chosen and what was pressed. */
function buttons(line, press, asList) {
  let [all, now] = [[], []];
  const fill = onOthers((options) => {
    all = options.map(([value, name]) => make("button", name, { type: "button", value }));
    for (const one of all)
      one.onclick = ({ detail: isByHand }) => {
        if (isByHand) one.blur(); // the next key belongs to the page
        press(now, one.value);
      };
    line.replaceChildren(...all);
  });
  return ({ options, chosen, is_fixed }) => {
    fill(options);
    now = asList(chosen);
    for (const one of all) Object.assign(one, { ariaPressed: String(now.includes(one.value)), disabled: is_fixed });
  };
}

const kinds = {
  list(line, choice, { tell }) {
    const list = entry(line, choice, {}, "select");
    let isByHand = false;
    list.addEventListener("pointerdown", () => (isByHand = true));
    list.addEventListener("keydown", () => (isByHand = false));
    list.onchange = () => {
      if (isByHand) list.blur(); // the next key belongs to the page
      tell(list.value);
    };
    const fill = onOthers((options) => list.replaceChildren(...options.map(choosable)));
    return ({ options, chosen, placeholder, is_fixed }) => {
      fill(options.length ? options : [["", placeholder]]);
      list.value = chosen;
      list.disabled = is_fixed || !options.length;
    };
  },

  buttons: (line, choice, { tell }) =>
    buttons(line, ([chosen], pressed) => chosen !== pressed && tell(pressed), (chosen) => [chosen]),

  pills: (line, choice, { tell }) =>
    buttons(
      line,
      (chosen, pressed) =>
        tell(chosen.includes(pressed) ? chosen.filter((one) => one !== pressed) : [...chosen, pressed]),
      (chosen) => chosen,
    ),

  text(line, choice, { tell, isIn }) {
    const field = entry(line, choice, { disabled: choice.is_fixed, autocomplete: "off" });
    const known = make("datalist", "", { id: `known-${choice.name}` });
    const clear = make("button", "×", { type: "button", className: "clear", ariaLabel: `Clear ${choice.label}` });
    if (!choice.is_fixed) line.append(known, clear);
    let told = "";
    const choose = (value) => {
      if (value !== told) tell((told = value));
    };
    field.onchange = () => choose(field.value.trim());
    field.oninput = ({ inputType }) => {
      if (!inputType || inputType === "insertReplacementText") choose(field.value.trim());
    };
    field.onkeydown = ({ key }) => {
      if (key === "Escape") field.value = told;
      if (key === "Enter") field.blur(); // tells; the next key belongs to the page
    };
    clear.onclick = () => choose((field.value = ""));
    const fill = onOthers((options) => {
      known.replaceChildren(...options.map(([value]) => make("option", "", { value })));
      if (options.length) field.setAttribute("list", known.id);
    });
    return ({ options, chosen, placeholder, longest }) => {
      fill(options);
      told = chosen;
      const isWriting = isIn(field) && field.value.trim() !== chosen;
      if (!isWriting) field.value = chosen;
      Object.assign(field, { placeholder, maxLength: longest });
      clear.hidden = !chosen;
    };
  },

  several(line, choice, { tell }) {
    const known = make("datalist", "", { id: `known-${choice.name}` });
    const field = entry(line, choice, { autocomplete: "off" });
    field.setAttribute("list", known.id);
    let [now, left] = [[], []];
    const change = (values) => tell((now = values));
    const take = () => {
      const found = left.find((one) => one.includes(field.value));
      if (!field.value || !found) return;
      change([...now, found[0]]);
      field.value = "";
      field.blur(); // the next key belongs to the page
    };
    field.onchange = take;
    field.oninput = ({ inputType }) => {
      if (!inputType || inputType === "insertReplacementText") take();
    };
    const chip = ([value, name]) => {
      const one = make("button", name, { type: "button", className: "chip", ariaLabel: `Without ${name}` });
      one.onclick = () => change(now.filter((other) => other !== value));
      return one;
    };
    const chips = make("div", "", { className: "chips" });
    line.append(known, chips);
    const fill = onOthers((names) => known.replaceChildren(...names.map((name) => choosable([name, ""]))));
    return ({ options, chosen, placeholder, is_fixed }) => {
      now = chosen;
      left = options.filter(([value]) => !chosen.includes(value));
      fill(left.map(([, name]) => name));
      Object.assign(field, { placeholder, disabled: is_fixed });
      chips.replaceChildren(...chosen.map((value) => chip(options.find(([one]) => one === value) ?? [value, value])));
    };
  },

  toggle(line, choice, { tell }) {
    const check = entry(line, choice, { type: "checkbox", className: "" });
    check.role = "switch";
    check.onchange = () => tell(check.checked);
    return ({ chosen, is_fixed }) => Object.assign(check, { checked: chosen, disabled: is_fixed });
  },

  slider(line, choice, { tell }) {
    const slider = entry(line, choice, { type: "range", className: "" });
    const output = make("output");
    line.append(output);
    const say = () => (output.textContent = written(Number(slider.value), slider.step));
    slider.oninput = say;
    slider.onchange = () => tell(Number(slider.value));
    return ({ chosen, limits: [min, max, step], is_fixed }) => {
      Object.assign(slider, { min, max, step, disabled: is_fixed });
      slider.value = chosen;
      say();
    };
  },

  number(line, choice, { tell, isIn }) {
    const field = entry(line, choice, { type: "number" });
    field.onchange = () => field.validity.valid && field.value !== "" && tell(Number(field.value));
    return ({ chosen, limits: [min, max, step], is_fixed }) => {
      Object.assign(field, { min, max, step, disabled: is_fixed });
      if (!isIn(field) || field.validity.valid) field.value = chosen;
    };
  },
};

/** A number with as many places as its step has. */
function written(value, step) {
  return value.toFixed((String(step).split(".")[1] ?? "").length);
}
