// What comes to the map apart from its colours, by components of their own: places (bytes), so that they are not
// sent again with every colour, and marks on a point and a lasso. The map listens for "places" and "marks".

export const inputs = { places: /** @type {Uint8Array | null} */ (null), marks: /** @type {any} */ (null) };
export const changes = new EventTarget();
let lastMarks = "";

export default function ({ data }) {
  const name = data instanceof Uint8Array ? "places" : "marks";
  const marks = name === "marks" ? JSON.stringify(data) : lastMarks;
  // Only what is new is taken: the same marks may have been changed by hand since.
  if (name === "marks" ? marks === lastMarks : data === inputs.places) return;
  lastMarks = marks;
  inputs[name] = data;
  changes.dispatchEvent(new Event(name));
}
