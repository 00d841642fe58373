// What node lacks of a browser: storage that survives a "reload", a window, an address. And a real
// server of the desk's routes, whose answers each test decides.
import { createServer } from "node:http";

export class MemoryStorage {
  constructor() {
    // As in a browser, entries are the object's own keys.
    Object.defineProperty(this, "isFull", { value: false, writable: true, enumerable: false });
  }

  getItem(key) {
    return Object.hasOwn(this, key) ? this[key] : null;
  }

  setItem(key, value) {
    if (this.isFull) throw new Error("QuotaExceededError");
    this[key] = String(value);
  }

  removeItem(key) {
    delete this[key];
  }
}

export function openBrowser() {
  globalThis.window = new EventTarget();
  globalThis.localStorage = new MemoryStorage();
  globalThis.location = { origin: "http://127.0.0.1:1" }; // nobody answers there
  globalThis.navigator ??= { onLine: true };
  console.debug = () => {};
}

/** Answer requests with `answer(route, body, headers)`: `[status, json]`; keep what was asked. */
export async function serve(answer) {
  const requests = [];
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = JSON.parse(Buffer.concat(parts).toString());
    const route = request.url.replace("/api/", "");
    requests.push({ route, body, token: request.headers["x-plain-token"] });
    const [status, reply] = answer(route, body, request.headers);
    response.writeHead(status, { "content-type": "application/json", connection: "close" });
    response.end(JSON.stringify(reply));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  globalThis.location = { origin: `http://127.0.0.1:${server.address().port}` };
  return { requests, close: () => new Promise((done) => server.close(done)) };
}

/** A server that stores what it is sent, as often as it is sent. */
export async function serveStore() {
  const stored = [];
  const server = await serve((route, { decisions }) => {
    stored.push(...decisions);
    return [200, { saved: decisions.map((one) => one.uid), refused: [] }];
  });
  return { ...server, stored };
}

export async function until(isTrue) {
  for (let left = 2000; !isTrue(); left--) {
    if (!left) throw new Error(`never true: ${isTrue}`);
    await new Promise((done) => setTimeout(done, 5));
  }
}

export const decision = (uid, more = {}) => ({
  uid: String(uid),
  instance_id: `i${uid}`,
  label: "cat",
  verdict: "keep",
  confidence: 0.5,
  shown: true,
  sampled: false,
  seconds: 1,
  ...more,
});
