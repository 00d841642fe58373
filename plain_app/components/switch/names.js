// Names, one of them open: a row of them or a list. They show a choice at once; a rerun does the rest.

/** Show names in a box; `tell` is called with another one that is chosen. */
function showChoice(box, { label, options, open, look }, tell) {
  const names = JSON.stringify([label, options]);
  if (box.dataset.names !== names) {
    box.dataset.names = names;
    box.dataset.look = look;
    box.show = look === "list" ? createList(box, label, options) : createRow(box, label, options);
  }
  const show = (name) => box.show((box.dataset.open = name));
  box.choose = (name) => {
    if (name === box.dataset.open) return;
    show(name);
    tell(name);
  };
  show(open);
}

function element(tag, text, properties) {
  const made = document.createElement(tag);
  made.textContent = text;
  return Object.assign(made, properties);
}

function createRow(box, label, options) {
  const tabs = options.map((name) => element("button", name, { type: "button", role: "tab" }));
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

function createList(box, label, options) {
  const list = document.createElement("select");
  list.append(...options.map((name, at) => element("option", name.slice(0, 100), { value: at })));
  list.onchange = () => box.choose(options[list.value]);
  const title = element("label", label, {});
  title.append(list);
  box.replaceChildren(title);
  return (open) => (list.value = options.indexOf(open));
}
