// localStorage may be full, or not given at all.

/** Use it; whether that was possible. @param {() => void} use */
export function canStore(use) {
  try {
    use();
    return true;
  } catch {
    return false;
  }
}
