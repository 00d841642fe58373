// What the map's three components (places, marks, the map itself) tell each other.

/** @type {{ places: Uint8Array | null, marks: any, sizes: Record<string, { width: number, height: number }> }} */
export const shared = {
  places: null,
  marks: null,
  sizes: {}, // by layout: a map that comes back has its old size
};
export const changes = new EventTarget(); // events: "places", "marks"

export function publish(name, value) {
  shared[name] = value;
  changes.dispatchEvent(new Event(name));
}
