// Places on the map and on the screen; no drawing here.

const MAX_CORNERS = 240; // of a lasso that is sent
const REACH = 10; // pixels from an instance that still mean it

/** Which part of the map is seen: its centre, and how many pixels a unit has. */
export class Viewport {
  width = 0;
  height = 0;
  x = 0;
  y = 0;
  zoom = 1;

  get ratio() {
    return Math.min(window.devicePixelRatio || 1, 2);
  }

  get scale() {
    return (this.zoom * Math.min(this.width, this.height)) / 2.1;
  }

  toPixel(mapX, mapY) {
    return [this.width / 2 + (mapX - this.x) * this.scale, this.height / 2 - (mapY - this.y) * this.scale];
  }

  toMap(pixelX, pixelY) {
    return [this.x + (pixelX - this.width / 2) / this.scale, this.y - (pixelY - this.height / 2) / this.scale];
  }

  /** Give canvases as many pixels as the screen has for them. */
  fit(...canvases) {
    const [width, height] = [this.width * this.ratio, this.height * this.ratio].map(Math.round);
    for (const one of canvases)
      if (one.width !== width || one.height !== height) [one.width, one.height] = [width, height];
  }

  move(pixelX, pixelY) {
    [this.x, this.y] = [this.x - pixelX / this.scale, this.y + pixelY / this.scale];
  }

  /** Zoom so that what is at this pixel stays there. */
  zoomAt(factor, pixelX, pixelY) {
    const [mapX, mapY] = this.toMap(pixelX, pixelY);
    const zoom = Math.min(Math.max(this.zoom * factor, 0.5), 200);
    const part = this.zoom / zoom;
    [this.x, this.y, this.zoom] = [mapX + (this.x - mapX) * part, mapY + (this.y - mapY) * part, zoom];
  }

  reset() {
    [this.x, this.y, this.zoom] = [0, 0, 1];
  }
}

/** The point that is meant by a place on the map; -1 if none is near. */
export function nearest(points, [x, y], scale) {
  let best = -1;
  let least = (REACH / scale) ** 2;
  for (let at = 0; at < points.n; at++) {
    const distance = (points.x[at] - x) ** 2 + (points.y[at] - y) ** 2;
    if (distance < least) [best, least] = [at, distance];
  }
  return best;
}

/** A lasso with few enough corners to be sent. */
export function thin(corners) {
  const step = Math.ceil(corners.length / MAX_CORNERS);
  return corners.filter((_, at) => at % step === 0);
}

/** Instances without a value lie under the others. */
export function drawingOrder({ n, value, classes }) {
  const order = new Uint32Array(n);
  let [low, high] = [0, n];
  for (let at = n - 1; at >= 0; at--) if (value[at] !== classes) order[--high] = at;
  for (let at = 0; at < n; at++) if (value[at] === classes) order[low++] = at;
  return order;
}

/** The diameter of a point in pixels of the screen. */
export const pointSize = ({ n }, zoom) => (n > 50000 ? 2.5 : n > 10000 ? 3.5 : 6) * zoom ** 0.25;
