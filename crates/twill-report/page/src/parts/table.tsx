// All operations as a table: the text alternative of the timeline.
import { useMemo, useState } from "preact/hooks";
import type { LoopModel, Operation } from "../model/loop";
import { selection, useStore } from "../state";
import { grouped, place } from "../words";
import { Pick } from "./pick";
import { Scroll } from "./scroll";

const PAGE = 250;

interface Column {
  name: string;
  number: boolean;
  of: (operation: Operation) => string | number;
}

function columns(interval: number): Column[] {
  return [
    { name: "kind", number: false, of: (o) => o.kind },
    { name: "source", number: false, of: (o) => place(o.source) },
    { name: "group", number: true, of: (o) => o.group },
    { name: "unit", number: false, of: (o) => o.unit ?? "–" },
    { name: "issue cycle", number: true, of: (o) => o.cycle },
    { name: "stage", number: true, of: (o) => o.stage },
    { name: "slot", number: true, of: (o) => o.cycle % interval },
    { name: "cycles", number: true, of: (o) => o.span },
    { name: "latency", number: true, of: (o) => o.latency },
    { name: "execution", number: false, of: (o) => (o.asynchronous ? "asynchronous" : "synchronous") },
    { name: "result", number: false, of: (o) => o.result || "–" },
  ];
}

function compared(a: string | number, b: string | number): number {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}

/** The operations of a loop. */
export function Operations({ loop }: { loop: LoopModel }) {
  const at = useStore(selection);
  const [order, setOrder] = useState({ name: "issue cycle", falling: false });
  const [shown, setShown] = useState(PAGE);
  const all = useMemo(() => columns(loop.interval), [loop]);
  const rows = useMemo(() => {
    const of = all.find((column) => column.name === order.name)?.of ?? ((operation: Operation) => operation.name);
    const sorted = [...loop.operations].sort((a, b) => compared(of(a), of(b)) || a.index - b.index);
    return order.falling ? sorted.reverse() : sorted;
  }, [loop, all, order]);
  const head = (name: string, number: boolean) => (
    <th
      key={name}
      class={number ? "number" : ""}
      aria-sort={order.name === name ? (order.falling ? "descending" : "ascending") : "none"}
    >
      <button type="button" onClick={() => setOrder({ name, falling: order.name === name && !order.falling })}>
        {name}
      </button>
    </th>
  );
  return (
    <section id={`operations-${loop.index}`} class="part">
      <h3>Operations</h3>
      <Scroll tall>
        <table class="operations">
          <caption>
            <span>Operations of an iteration; iteration k issues k · I cycles later</span>
          </caption>
          <thead>
            <tr>
              {head("operation", false)}
              {all.map((column) => head(column.name, column.number))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, shown).map((operation) => {
              const chosen = at?.loop === loop.index && at.operation === operation.name;
              return (
                <tr key={operation.name} class={chosen ? "selected" : ""} data-row={operation.name}>
                  <td>
                    <Pick loop={loop} operation={operation} pressed={chosen} />
                  </td>
                  {all.map((column) => {
                    const value = column.of(operation);
                    return (
                      <td key={column.name} class={column.number ? "number" : ""}>
                        {typeof value === "number" ? grouped(value) : value}
                      </td>
                    );
                  })}
                </tr>
              );
            })}
          </tbody>
        </table>
      </Scroll>
      {rows.length > shown && (
        <button type="button" onClick={() => setShown(rows.length)}>
          Show all {grouped(rows.length)}
        </button>
      )}
    </section>
  );
}
