// Requests to the routes of the review desk (`plain_app.server.routes`).

const TIMEOUT = 15000; // milliseconds

// Tokens expire. The page, which knows who is logged in, gives a fresh one at every rerun.
export const session = { token: "", rerun() {} };

/** Rejects with an error that has a `status` if the server answered at all. @returns {Promise<any>} */
export async function post(route, token, body) {
  const answer = await fetch(`${location.origin}/api/${route}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-plain-token": token },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(TIMEOUT),
  });
  const reply = answer.headers.get("content-type")?.includes("json") ? await answer.json() : {};
  if (!answer.ok) throw Object.assign(new Error(reply.error ?? `error ${answer.status}`), { status: answer.status });
  return reply;
}

/** How long to wait after so many failures: ever longer, and not all desks at the same moment. */
export function retryDelay(failures, longest) {
  return Math.min(250 * 2 ** failures, longest) * (0.5 + Math.random());
}

/** A name for an answer that no other has (`randomUUID` is there on safe origins alone). */
export const newUid = () =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");
