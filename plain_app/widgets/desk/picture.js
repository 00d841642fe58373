// Pictures of instances: the one that is asked about, and small ones of others. What a person does to
// look closer (zoom) belongs here.
import { make } from "../elements.js";

const TINY = 6000; // characters: a picture of so few pixels is not smoothed

/** Show the picture of an item, if it has one. */
export function showPicture(image, { picture }) {
  image.hidden = !picture;
  if (picture && image.src !== picture) image.src = picture;
  image.classList.toggle("tiny", (picture ?? "").length < TINY);
}

/** @param {string} picture */
export function thumbnail(picture) {
  const image = make("img", picture.length < TINY ? "tiny" : "");
  image.src = picture;
  image.alt = "";
  return image;
}
