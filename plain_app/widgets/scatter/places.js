// Takes places once for all colours: they travel apart, and a message that did not change is not sent again.
import { publish, shared } from "./shared.js";

export default function ({ data }) {
  if (data !== shared.places) publish("places", data);
}
