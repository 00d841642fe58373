// What mouse, pen, finger and keys do: move, zoom, click, lasso.

const DRAGGED = 4; // pixels after which a press is no click
const STEP = 40; // pixels an arrow key moves the map

/** @type {(surface: HTMLElement, viewport: import("./geometry.js").Viewport, listener: any) => any} */
export function listenTo(surface, viewport, listener) {
  const pointer = { mode: "move", isDrawing: false };
  let press = /** @type {any} */ (null);
  let path = [];
  const placeOf = (event) => [event.offsetX, event.offsetY];
  surface.onpointerdown = (event) => {
    if (event.button) return;
    surface.setPointerCapture(event.pointerId);
    press = { start: placeOf(event), last: placeOf(event), isDrag: false };
    pointer.isDrawing = pointer.mode === "lasso" || event.shiftKey;
    path = [];
  };
  surface.onpointermove = (event) => {
    const [x, y] = placeOf(event);
    if (!press) return listener.hovered(viewport.toMap(x, y));
    press.isDrag ||= Math.hypot(x - press.start[0], y - press.start[1]) > DRAGGED;
    if (pointer.isDrawing) listener.drawn((path = [...path, viewport.toMap(x, y)]), false);
    else if (press.isDrag) {
      viewport.move(x - press.last[0], y - press.last[1]);
      listener.moved();
    }
    press.last = [x, y];
  };
  surface.onpointerup = (event) => {
    const was = press;
    press = null;
    const isLasso = pointer.isDrawing && was?.isDrag && path.length > 2;
    pointer.isDrawing = false;
    if (isLasso) listener.drawn(path, true);
    else if (was && !was.isDrag) listener.clicked(viewport.toMap(...placeOf(event)));
  };
  surface.onpointercancel = () => {
    press = null;
    pointer.isDrawing = false;
  };
  surface.onpointerleave = () => listener.hovered([Infinity, Infinity]);
  surface.onwheel = (event) => {
    event.preventDefault();
    viewport.zoomAt(Math.exp(-event.deltaY / 400), ...placeOf(event));
    listener.moved();
  };
  surface.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || !pressed(viewport, event.key)) return;
    event.preventDefault();
    listener.moved();
  };
  return pointer;
}

/** Do what a key means; whether it means anything. */
export function pressed(viewport, key) {
  const middle = [viewport.width / 2, viewport.height / 2];
  const actions = {
    ArrowLeft: () => viewport.move(STEP, 0),
    ArrowRight: () => viewport.move(-STEP, 0),
    ArrowUp: () => viewport.move(0, STEP),
    ArrowDown: () => viewport.move(0, -STEP),
    "+": () => viewport.zoomAt(1.3, ...middle),
    "-": () => viewport.zoomAt(1 / 1.3, ...middle),
    0: () => viewport.reset(),
  };
  actions[key]?.();
  return key in actions;
}
