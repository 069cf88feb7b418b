// Tables, as all parts of the page have them.
import type { ComponentChildren } from "preact";
import { Scroll } from "./scroll";

/** The head of a column: a name, the name of a column of numbers, or nothing above a picture. */
type Head = string | { number: string } | null;

function headOf(head: Head, index: number) {
  if (head === null) return <th key={index} class="wide" aria-hidden="true" />;
  if (typeof head === "string") return <th key={index}>{head}</th>;
  return (
    <th key={index} class="number">
      {head.number}
    </th>
  );
}

interface Properties {
  /** Class of the table. */
  of?: string;
  caption?: ComponentChildren;
  heads?: Head[];
  /** It scrolls by itself when it is long. */
  tall?: boolean;
  /** Its rows. */
  children: ComponentChildren;
}

/** A table that scrolls sideways where there is little room. */
export function Sheet({ of, caption, heads = [], tall, children }: Properties) {
  return (
    <Scroll tall={tall}>
      <table class={of}>
        {caption && (
          <caption>
            <span>{caption}</span>
          </caption>
        )}
        {heads.length > 0 && (
          <thead>
            <tr>{heads.map(headOf)}</tr>
          </thead>
        )}
        <tbody>{children}</tbody>
      </table>
    </Scroll>
  );
}
