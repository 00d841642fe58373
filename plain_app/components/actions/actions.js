// Buttons side by side; a press is told by the button's name.
export default function ({ data, parentElement, setTriggerValue }) {
  const box = parentElement.querySelector(".plain-actions");
  box.press = (name) => setTriggerValue("pressed", name);
  const now = JSON.stringify(data);
  if (box.dataset.now === now) return;
  box.dataset.now = now;
  const make = (look) => (name) => {
    const button = document.createElement("button");
    button.onclick = () => box.press(name);
    return Object.assign(button, { type: "button", textContent: name, className: look });
  };
  box.replaceChildren(...data.buttons.map(make("button")), ...data.links.map(make("link")));
}
