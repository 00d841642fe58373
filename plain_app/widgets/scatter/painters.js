// Draws the points: many of them in WebGL, few on a plain canvas, which needs no context to be set up.
// No library: a map in WebGL is two buffers and one drawing call.
import { rgb } from "./colours.js";
import { drawingOrder, pointSize } from "./geometry.js";

const FEW = 20000; // up to so many points, a plain canvas is quicker than WebGL
const OPACITY = 0.85;

export const isFew = ({ n }) => n <= FEW;

/** @param {HTMLCanvasElement} canvas */
export function createPainter(canvas, points) {
  const gl = isFew(points) ? null : canvas.getContext("webgl", { antialias: false, alpha: false });
  return gl ? webglPainter(gl) : canvasPainter(canvas);
}

const VERTEX = `
attribute vec2 place;
attribute vec4 ink;
uniform vec2 centre, reach;
uniform mediump float size;
varying vec4 colour;
void main() {
  gl_Position = vec4((place - centre) * reach, 0.0, 1.0);
  gl_PointSize = size;
  colour = ink;
}`;
const FRAGMENT = `
precision mediump float;
uniform mediump float size;
varying vec4 colour;
void main() {
  float inside = (0.5 - length(gl_PointCoord - 0.5)) * size;
  if (inside <= 0.0) discard;
  gl_FragColor = vec4(colour.rgb, colour.a * min(inside, 1.0));
}`;

/** @param {WebGLRenderingContext} gl */
function linkShaders(gl) {
  const program = gl.createProgram();
  for (const [kind, text] of [
    [gl.VERTEX_SHADER, VERTEX],
    [gl.FRAGMENT_SHADER, FRAGMENT],
  ]) {
    const shader = /** @type {WebGLShader} */ (gl.createShader(Number(kind)));
    gl.shaderSource(shader, String(text));
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  gl.useProgram(program);
  return program;
}

/** @param {WebGLRenderingContext} gl */
function webglPainter(gl) {
  const program = linkShaders(gl);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  const uniform = (name) => gl.getUniformLocation(program, name);
  const fill = (buffer, name, array, count, kind, isNormalized) => {
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, array, gl.STATIC_DRAW);
    const at = gl.getAttribLocation(program, name);
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, count, kind, isNormalized, 0, 0);
  };
  const [places, inks] = [gl.createBuffer(), gl.createBuffer()];
  let points;
  return {
    isWebGL: true,
    load(next, colours, theme) {
      points = next;
      const { place, ink } = interleave(points, colours);
      fill(places, "place", place, 2, gl.FLOAT, false);
      fill(inks, "ink", ink, 4, gl.UNSIGNED_BYTE, true);
      const [red, green, blue] = rgb(theme.background);
      gl.clearColor(red / 255, green / 255, blue / 255, 1);
    },
    paint({ x, y, width, height, scale, zoom, ratio }) {
      gl.viewport(0, 0, gl.drawingBufferWidth, gl.drawingBufferHeight);
      gl.uniform2f(uniform("centre"), x, y);
      gl.uniform2f(uniform("reach"), (2 * scale) / width, (2 * scale) / height);
      gl.uniform1f(uniform("size"), pointSize(points, zoom) * ratio);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.drawArrays(gl.POINTS, 0, points.n);
    },
    destroy: () => gl.getExtension("WEBGL_lose_context")?.loseContext(),
  };
}

/** Places and colours in drawing order, as the shaders take them. */
function interleave(points, colours) {
  const order = drawingOrder(points);
  const place = new Float32Array(2 * points.n);
  const ink = new Uint8Array(4 * points.n);
  const inks = new Uint32Array(ink.buffer);
  const bytes = colours.flatMap((one) => [...rgb(one), Math.round(255 * OPACITY)]);
  const words = new Uint32Array(new Uint8Array(bytes).buffer);
  for (let to = 0; to < points.n; to++) {
    const at = order[to];
    place[2 * to] = points.x[at];
    place[2 * to + 1] = points.y[at];
    inks[to] = words[points.value[at]];
  }
  return { place, ink };
}

/** @param {HTMLCanvasElement} canvas */
function canvasPainter(canvas) {
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
  let points, order, colours, theme;
  return {
    isWebGL: false,
    load(...loaded) {
      [points, colours, theme] = loaded;
      order = drawingOrder(points);
    },
    paint(viewport) {
      const radius = pointSize(points, viewport.zoom) / 2;
      pen.setTransform(viewport.ratio, 0, 0, viewport.ratio, 0, 0);
      pen.globalAlpha = 1;
      pen.fillStyle = theme.background;
      pen.fillRect(0, 0, viewport.width, viewport.height);
      pen.globalAlpha = OPACITY;
      for (const at of order) {
        const [x, y] = viewport.toPixel(points.x[at], points.y[at]);
        if (x < -radius || y < -radius || x > viewport.width + radius || y > viewport.height + radius) continue;
        pen.fillStyle = colours[points.value[at]];
        pen.beginPath();
        pen.arc(x, y, radius, 0, 2 * Math.PI);
        pen.fill();
      }
    },
    destroy() {},
  };
}
