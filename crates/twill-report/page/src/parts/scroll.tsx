// Scrolling parts show that they scroll: a shadow at each edge beyond which there is more.
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

/** Pixels that count as nothing: sizes are rounded. */
const NOTHING = 1;

function beyond(pane: HTMLElement): string {
  const right = pane.scrollWidth - pane.clientWidth - pane.scrollLeft;
  const down = pane.scrollHeight - pane.clientHeight - pane.scrollTop;
  const edges = { left: pane.scrollLeft, right, up: pane.scrollTop, down };
  return Object.entries(edges)
    .filter(([, pixels]) => pixels > NOTHING)
    .map(([edge]) => edge)
    .join(" ");
}

/** The edges of an element beyond which there is more: `left`, `right`, `up`, `down`. */
export function useMore<T extends HTMLElement>(): [RefObject<T | null>, string] {
  const pane = useRef<T>(null);
  const [more, setMore] = useState("");
  useEffect(() => {
    if (!pane.current) return;
    const element = pane.current;
    const look = () => setMore(beyond(element));
    const sizes = new ResizeObserver(look);
    for (const one of [element, ...element.children]) sizes.observe(one);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      sizes.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, []);
  return [pane, more];
}

/** A box that scrolls sideways where there is little room, and downwards if it is tall. */
export function Scroll({ tall, children }: { tall?: boolean; children: ComponentChildren }) {
  const [pane, more] = useMore<HTMLDivElement>();
  return (
    <div class="scroll-frame" data-more={more}>
      <div class={tall ? "scroll tall" : "scroll"} ref={pane}>
        {children}
      </div>
    </div>
  );
}
