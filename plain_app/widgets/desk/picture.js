// Pictures of instances: the one that is asked about, small ones of others, and a closer look.
import { make } from "../elements.js";

const TINY = 6000; // characters: a picture of so few pixels is not smoothed
const CLOSEST = 8; // times the size that fits the window

/** Show the picture of an item, if it has one. */
export function showPicture(image, { picture }) {
  image.hidden = !picture;
  if (picture && image.src !== picture) image.src = picture;
  image.classList.toggle("tiny", (picture ?? "").length < TINY);
}

/** @param {string} picture */
export function thumbnail(picture) {
  const image = Object.assign(make("img"), { alt: "" });
  showPicture(image, { picture });
  return image;
}

/** Show a picture over the page: the small one at once, the large one when `load` has it; if open, closer. */
export async function openPicture(dialog, small, load) {
  const image = dialog.querySelector("img");
  if (dialog.open) return zoom(image, 2);
  image.onclick = (event) => zoom(image, 2, event);
  image.onwheel = (event) => zoom(image, event.deltaY < 0 ? 1.25 : 0.8, event);
  image.style.setProperty("--zoom", "1");
  showPicture(image, { picture: small });
  dialog.showModal();
  const { picture } = await load();
  if (image.src === small) showPicture(image, { picture });
}

/** Zoom by a factor around the mouse, or the middle of what is seen; twice the closest is all of it again. */
function zoom(image, factor, event) {
  event?.preventDefault();
  const lens = image.parentElement;
  const x = event?.offsetX ?? lens.scrollLeft + lens.clientWidth / 2;
  const y = event?.offsetY ?? lens.scrollTop + lens.clientHeight / 2;
  const before = Number(image.style.getPropertyValue("--zoom"));
  const after = factor * before >= 2 * CLOSEST ? 1 : Math.max(1, Math.min(CLOSEST, factor * before));
  image.style.setProperty("--zoom", String(after));
  lens.scrollBy(x * (after / before - 1), y * (after / before - 1));
}
