// Bars that move from where they were in the chart before to where they are now.

/** How long they move; 0: not at all. */
export const motion = { milliseconds: 0 };

/** A place in the window of a chart. */
export interface Place {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Moves an element from another place to its own, `now`. */
export function morph(element: Element, from: Place, now: Place): void {
  const across = from.width / Math.max(1, now.width);
  const down = from.height / Math.max(1, now.height);
  if (from.left === now.left && from.top === now.top && across === 1 && down === 1) return;
  // Scaled from the plot's own corner: x ↦ across · x + shift takes the left edge to the old one.
  const shift = [from.left - across * now.left, from.top - down * now.top];
  const start = `translate(${shift[0]}px, ${shift[1]}px) scale(${across}, ${down})`;
  element.animate([{ transform: start }, { transform: "none" }], { duration: motion.milliseconds, easing: "ease-out" });
}
