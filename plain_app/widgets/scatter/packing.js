// How points come from the server: a length, a number of points, a head in JSON, then numbers.

function unpack(bytes) {
  const buffer = bytes.slice().buffer; // a copy that begins at a multiple of four
  const [size, n] = new Uint32Array(buffer, 0, 2);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size)));
  return { ...head, n, buffer, at: 8 + size };
}

export function unpackPlaces(bytes) {
  const { layout, axes, n, buffer, at } = unpack(bytes);
  return { layout, axes, x: new Float32Array(buffer, at, n), y: new Float32Array(buffer, at + 4 * n, n) };
}

export function unpackColours(bytes) {
  const { buffer, at, ...head } = unpack(bytes);
  return { ...head, value: new Uint8Array(buffer, at, head.n) };
}
