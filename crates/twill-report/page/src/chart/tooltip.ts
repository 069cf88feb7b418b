// The page's one tooltip.
import type { Tip } from "./spec";

let element: HTMLDivElement | null = null;
/** Its subject. */
let told: Element | null = null;

function tooltip(): HTMLDivElement {
  if (!element) {
    element = document.createElement("div");
    element.className = "tooltip";
    element.setAttribute("role", "tooltip");
    element.hidden = true;
    document.body.append(element);
    // Choosing an operation scrolls the code to it, which moves nothing else.
    const scrolled = ({ target }: Event) => target instanceof Node && target.contains(told) && hideTip();
    window.addEventListener("scroll", scrolled, { passive: true, capture: true });
    // A finger does not leave what it has tapped: touching anything else ends the tooltip.
    const touched = (event: PointerEvent) => event.pointerType === "touch" && hideTip();
    window.addEventListener("pointerdown", touched, { passive: true, capture: true });
  }
  return element;
}

/** Shows a tooltip of an element, next to it or to a box in it. */
export function showTip(tip: Tip, of: Element, box = of.getBoundingClientRect()): void {
  const into = tooltip();
  told = of;
  const title = document.createElement("strong");
  title.textContent = tip.title;
  const list = document.createElement("dl");
  for (const [name, value] of tip.rows) {
    const term = document.createElement("dt");
    term.textContent = name;
    const text = document.createElement("dd");
    text.textContent = value;
    list.append(term, text);
  }
  into.replaceChildren(title, list);
  into.hidden = false;
  const { width, height } = into.getBoundingClientRect();
  const left = Math.max(8, Math.min(Math.max(box.left, 8), window.innerWidth - width - 8));
  const below = box.bottom + 8;
  const top = below + height < window.innerHeight ? below : Math.max(8, box.top - height - 8);
  into.style.left = `${left}px`;
  into.style.top = `${top}px`;
}

/** Hides the tooltip. */
export function hideTip(): void {
  if (element) element.hidden = true;
}
