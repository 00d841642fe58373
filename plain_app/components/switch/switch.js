// Names, one of them open: a row of them or a list. It shows a choice at once; a rerun does the rest.
export default function ({ data, parentElement, setTriggerValue }) {
  const box = parentElement.querySelector(".plain-switch");
  const names = JSON.stringify(data.options);
  if (box.dataset.names !== names) {
    box.dataset.names = names;
    box.dataset.look = data.look;
    box.show = data.look === "list" ? createList(box, data) : createRow(box, data);
  }
  box.choose = (name) => {
    if (name === box.dataset.open) return;
    show(name);
    setTriggerValue("chosen", name);
  };
  const show = (name) => box.show((box.dataset.open = name));
  show(data.open);
}

function make(tag, text, properties) {
  const element = document.createElement(tag);
  element.textContent = text;
  return Object.assign(element, properties);
}

function createRow(box, { label, options }) {
  const tabs = options.map((name) => make("button", name, { type: "button", role: "tab" }));
  tabs.forEach((tab, at) => {
    tab.onclick = () => box.choose(options[at]);
    tab.onkeydown = ({ key }) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
      const next = step && tabs[(at + step + tabs.length) % tabs.length];
      next?.focus();
      next?.click();
    };
  });
  box.role = "tablist";
  box.ariaLabel = label;
  box.replaceChildren(...tabs);
  return (open) => {
    tabs.forEach((tab, at) => {
      tab.ariaSelected = String(options[at] === open);
      tab.tabIndex = options[at] === open ? 0 : -1;
    });
  };
}

function createList(box, { label, options }) {
  const list = document.createElement("select");
  list.append(...options.map((name, at) => make("option", name.slice(0, 100), { value: at })));
  list.onchange = () => box.choose(options[list.value]);
  const title = make("label", label, {});
  title.append(list);
  box.replaceChildren(title);
  return (open) => (list.value = options.indexOf(open));
}
