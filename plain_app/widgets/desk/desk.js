// The review desk: questions come in ahead of time, answers go out one by one. A key press changes
// the screen at once; its answer is kept in the browser until the server has committed it.
import { Outbox } from "./outbox.js";
import { Queue } from "./queue.js";
import { session } from "./server.js";
import { View } from "./view.js";

const outbox = new Outbox();
outbox.send();

const queues = new Map(); // by scope, so that what is on the desk survives reruns and page changes
const views = new Map(); // by root; the default export is called again at every rerun

export default function ({ data, parentElement, setTriggerValue }) {
  if (!queues.has(data.scope)) queues.set(data.scope, new Queue(data, outbox));
  const queue = queues.get(data.scope);
  Object.assign(queue.settings, data);
  session.token = data.token;
  session.rerun = () => setTriggerValue("answered", queue.answers.length);
  let view = views.get(parentElement);
  if (!view) views.set(parentElement, (view = new View(parentElement, outbox, queue)));
  view.show(queue, setTriggerValue);
  return () => {
    view.destroy();
    views.delete(parentElement);
  };
}
