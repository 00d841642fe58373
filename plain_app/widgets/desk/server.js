// Requests to the routes of the review desk (`plain_app.server.routes`).

const TIMEOUT = 15000; // milliseconds

// Tokens expire. The page, which knows who is logged in, gives a fresh one at every rerun.
export const session = { token: "", rerun() {} };

export class RequestError extends Error {
  /** @param {number} status */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** @returns {Promise<any>} */
export async function post(route, token, body) {
  const answer = await fetch(`${location.origin}/api/${route}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-plain-token": token },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(TIMEOUT),
  });
  const reply = answer.headers.get("content-type")?.includes("json") ? await answer.json() : {};
  if (!answer.ok) throw new RequestError(reply.error ?? `error ${answer.status}`, answer.status);
  return reply;
}

/** The status a request failed with; 0 if it was not answered at all. */
export const statusOf = (error) => (error instanceof RequestError ? error.status : 0);

/** How long to wait after so many failures: ever longer, and not all desks at the same moment. */
export function retryDelay(failures, longest) {
  return Math.min(250 * 2 ** failures, longest) * (0.5 + Math.random());
}

/** A name for an answer that no other has; `randomUUID` is there on safe origins alone. */
export const newUid = () =>
  crypto.randomUUID?.().replaceAll("-", "") ??
  [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");
