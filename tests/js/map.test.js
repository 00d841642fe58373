import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { palette } from "../../plain_app/widgets/scatter/colours.js";
import { drawingOrder, nearest, pointSize, thin, Viewport } from "../../plain_app/widgets/scatter/geometry.js";
import { unpackColours, unpackPlaces } from "../../plain_app/widgets/scatter/packing.js";
import { listenTo, pressed } from "../../plain_app/widgets/scatter/pointer.js";
import { openBrowser } from "./browser.js";

const close = (found, wanted) => found.forEach((one, at) => assert.ok(Math.abs(one - wanted[at]) < 1e-9, `${found}`));
let viewport;

beforeEach(() => {
  openBrowser();
  viewport = new Viewport();
  Object.assign(viewport, { width: 800, height: 420 });
});

test("the whole map fits, and places survive the way to pixels and back", () => {
  for (const corner of [
    [-1, -1],
    [1, 1],
  ]) {
    const [x, y] = viewport.toPixel(...corner);
    assert.ok(x >= 0 && x <= 800 && y >= 0 && y <= 420);
  }
  viewport.zoomAt(3.7, 10, 20);
  viewport.move(33, -12);
  close(viewport.toMap(...viewport.toPixel(0.3, -0.8)), [0.3, -0.8]);
  assert.ok(viewport.toPixel(0, 1)[1] < viewport.toPixel(0, 0)[1], "up is up");
});

test("zoom keeps what is under the pointer, within limits", () => {
  const before = viewport.toMap(123, 45);
  viewport.zoomAt(2, 123, 45);
  close(viewport.toMap(123, 45), before);
  viewport.zoomAt(1e9, 0, 0);
  assert.equal(viewport.zoom, 200);
  viewport.zoomAt(1e-9, 0, 0);
  assert.equal(viewport.zoom, 0.5);
  viewport.reset();
  close(viewport.toPixel(0, 0), [400, 210]);
});

test("keys move, zoom and reset the map; others mean nothing", () => {
  const [x] = viewport.toPixel(0, 0);
  assert.ok(pressed(viewport, "ArrowLeft"));
  close([viewport.toPixel(0, 0)[0]], [x + 40]);
  assert.ok(pressed(viewport, "+"));
  assert.ok(viewport.zoom > 1);
  assert.ok(pressed(viewport, "0"));
  assert.equal(viewport.zoom, 1);
  assert.equal(pressed(viewport, "q"), false);
});

test("the nearest point is meant, if it is near on the screen", () => {
  const points = { n: 3, x: [0, 0.01, 0.5], y: [0, 0, 0.5] };
  assert.equal(nearest(points, [0.009, 0], viewport.scale), 1);
  assert.equal(nearest(points, [0.3, 0.3], viewport.scale), -1);
  assert.equal(nearest(points, [Infinity, Infinity], viewport.scale), -1);
});

test("a long lasso is sent with few corners, a short one whole", () => {
  const circle = (n) => Array.from({ length: n }, (_, at) => [Math.cos(at / n), Math.sin(at / n)]);
  assert.equal(thin(circle(5)).length, 5);
  const few = thin(circle(5000));
  assert.ok(few.length > 200 && few.length <= 240);
  assert.deepEqual(few[0], circle(5000)[0]);
});

function drive(mode) {
  const events = [];
  const note =
    (name) =>
    (...args) =>
      events.push([name, ...args]);
  const surface = { setPointerCapture() {}, addEventListener() {} };
  const listener = Object.fromEntries(["moved", "hovered", "clicked", "drawn"].map((name) => [name, note(name)]));
  listenTo(surface, viewport, listener).mode = mode;
  const at = ([offsetX, offsetY], more = {}) => ({ offsetX, offsetY, button: 0, pointerId: 1, ...more });
  return {
    events,
    drag(path, more) {
      surface.onpointerdown(at(path[0], more));
      for (const place of path.slice(1)) surface.onpointermove(at(place, more));
      surface.onpointerup(at(path.at(-1), more));
    },
  };
}
const LOOP = [
  [100, 100],
  [200, 100],
  [200, 200],
  [100, 200],
];

test("a lasso gives its corners on the map; with Shift it needs no button", () => {
  for (const [mode, more] of [
    ["lasso", {}],
    ["move", { shiftKey: true }],
  ]) {
    const { events, drag } = drive(mode);
    drag(LOOP, more);
    const [name, corners, isDone] = events.at(-1);
    assert.deepEqual([name, isDone], ["drawn", true]);
    assert.equal(corners.length, 3);
    close(corners[0], viewport.toMap(200, 100));
  }
});

test("a press without a way is a click, also in lasso mode; a way moves the map", () => {
  for (const mode of ["move", "lasso"]) {
    const { events, drag } = drive(mode);
    drag([
      [50, 50],
      [52, 51],
    ]);
    assert.equal(events.at(-1)[0], "clicked");
  }
  const before = viewport.toPixel(0, 0);
  const { events, drag } = drive("move");
  drag(LOOP);
  assert.ok(events.every(([name]) => name === "moved"));
  close(viewport.toPixel(0, 0), [before[0], before[1] + 100]);
});

test("points without a value are drawn first, the others in their order", () => {
  assert.deepEqual([...drawingOrder({ n: 5, classes: 2, value: [0, 2, 1, 2, 0] })], [1, 3, 0, 2, 4]);
  assert.ok(pointSize({ n: 100_000 }, 1) < pointSize({ n: 100 }, 1));
});

function pack(head, n, ...arrays) {
  let text = JSON.stringify(head);
  text = text.padEnd(Math.ceil(text.length / 4) * 4);
  const parts = [new Uint8Array(new Uint32Array([text.length, n]).buffer), new TextEncoder().encode(text)];
  return Uint8Array.from([...parts, ...arrays.map((one) => new Uint8Array(one.buffer))].flatMap((one) => [...one]));
}

test("places and colours are read as they were packed, wherever they lie in memory", () => {
  const bytes = pack({ layout: "l" }, 2, new Float32Array([1, 2]), new Float32Array([3, 4]));
  const shifted = new Uint8Array(bytes.length + 1).subarray(1);
  shifted.set(bytes);
  const { layout, x, y } = unpackPlaces(shifted);
  assert.deepEqual([layout, [...x], [...y]], ["l", [1, 2], [3, 4]]);
  const { value, classes } = unpackColours(pack({ classes: 9 }, 3, new Uint8Array([5, 9, 0])));
  assert.deepEqual([[...value], classes], [[5, 9, 0], 9]);
});

test("colours run from doubtful to sure, the last is for points without a value", () => {
  const theme = { background: "#ffffff", text: "#000000", names: ["#112233"] };
  const found = palette({ classes: 3, legend: { scale: "confidence" } }, theme);
  assert.deepEqual([found.length, found[0], found[2]], [4, "#d08a3e", "#3f8f90"]);
  assert.equal(palette({ classes: 2, legend: { scale: "names" } }, theme)[1], "#112233");
});
