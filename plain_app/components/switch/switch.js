// A row of names, one of them open. It shows the choice at once; the rest follows by a rerun.
export default function ({ data, parentElement, setTriggerValue }) {
  const box = parentElement.querySelector(".plain-switch");
  const names = data.options.join("\n");
  if (box.dataset.names !== names) build(box, data, names);
  box.choose = (name) => {
    if (name === box.dataset.open) return;
    show(box, name);
    setTriggerValue("chosen", name);
  };
  show(box, data.open);
}

function build(box, { label, look, options }, names) {
  box.dataset.names = names;
  box.dataset.look = look;
  box.setAttribute("aria-label", label);
  box.replaceChildren(...options.map((name) => createTab(box, name)));
}

function createTab(box, name) {
  const tab = document.createElement("button");
  tab.type = "button";
  tab.role = "tab";
  tab.textContent = name;
  tab.onclick = () => box.choose(name);
  tab.onkeydown = ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!step) return;
    const tabs = [...box.children];
    const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
    next.focus();
    next.click();
  };
  return tab;
}

function show(box, open) {
  box.dataset.open = open;
  for (const tab of box.children) {
    const isOpen = tab.textContent === open;
    tab.setAttribute("aria-selected", isOpen);
    tab.tabIndex = isOpen ? 0 : -1;
  }
}
