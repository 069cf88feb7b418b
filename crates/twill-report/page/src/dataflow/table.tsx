// Operations of a dataflow schedule in text: the selected one, and a table with a filter.
import { useMemo, useState } from "preact/hooks";
import { Sheet } from "../parts/sheet";
import { grouped } from "../words";
import type { DataflowModel, Edge } from "./model";

interface Properties {
  model: DataflowModel;
  chosen: number | null;
  choose: (index: number | null) => void;
}

const PAGE = 100;
const MOST_NEIGHBOURS = 40;

function Edges({ model, edges, backward, choose }: Properties & { edges: Edge[]; backward: boolean }) {
  if (edges.length === 0) return <p class="note">{backward ? "It waits for nothing." : "Nothing waits for it."}</p>;
  return (
    <div>
      <Sheet
        heads={[
          backward ? "waits for" : "is waited for by",
          { number: "step" },
          { number: "delay" },
          { number: "distance" },
        ]}
      >
        {edges.slice(0, MOST_NEIGHBOURS).map((edge, index) => {
          const other = model.operations[backward ? edge.from : edge.to];
          if (!other) return null;
          return (
            <tr key={index}>
              <td>
                <button type="button" class="pick" onClick={() => choose(other.index)}>
                  {other.name}
                </button>
              </td>
              <td class="number">{grouped(other.start)}</td>
              <td class="number">{grouped(edge.delay)}</td>
              <td class="number">{edge.distance}</td>
            </tr>
          );
        })}
      </Sheet>
      {edges.length > MOST_NEIGHBOURS && <p class="note">and {grouped(edges.length - MOST_NEIGHBOURS)} more</p>}
    </div>
  );
}

/** The selected operation. */
export function Chosen(properties: Properties) {
  const { model, chosen, choose } = properties;
  const at = chosen === null ? undefined : model.operations[chosen];
  if (!at) {
    return (
      <p class="note" role="status">
        Select an operation to see what it waits for and what waits for it.
      </p>
    );
  }
  return (
    <div class="details" role="status" data-selected={at.name}>
      <header>
        <h4>{at.name}</h4>
        <button type="button" onClick={() => choose(null)}>
          Clear
        </button>
      </header>
      <p>
        Steps {grouped(at.start)} to {grouped(at.end)}, latency {grouped(at.latency)}, storage {grouped(at.storage)}
        {at.uses.map((use) => `, ${use.amount} ${use.resource} for ${use.steps}`).join("")}
      </p>
      <div class="columns">
        <Edges {...properties} edges={model.incoming[at.index] ?? []} backward />
        <Edges {...properties} edges={model.outgoing[at.index] ?? []} backward={false} />
      </div>
    </div>
  );
}

/** The table: what matches the filter, a page at a time. */
export function OperationTable({ model, chosen, choose }: Properties) {
  const [filter, setFilter] = useState("");
  const [page, setPage] = useState(0);
  const found = useMemo(() => {
    const words = filter.trim().toLowerCase();
    const all = words === "" ? model.operations : model.operations.filter((o) => o.name.toLowerCase().includes(words));
    return [...all].sort((a, b) => a.start - b.start || a.index - b.index);
  }, [model, filter]);
  const pages = Math.max(1, Math.ceil(found.length / PAGE));
  const now = Math.min(page, pages - 1);
  const rows = found.slice(now * PAGE, (now + 1) * PAGE);
  return (
    <section id="dataflow-table" class="part">
      <h3>Operations</h3>
      <div class="tools">
        <label>
          Name contains{" "}
          <input
            type="search"
            value={filter}
            onInput={(event) => {
              setFilter(event.currentTarget.value);
              setPage(0);
            }}
          />
        </label>
        <span class="buttons" role="group" aria-label="Pages of the table">
          <button type="button" aria-label="Previous page" disabled={now === 0} onClick={() => setPage(now - 1)}>
            ←
          </button>
          <output>
            {found.length === 0
              ? "none"
              : `${grouped(now * PAGE + 1)}–${grouped(now * PAGE + rows.length)} of ${grouped(found.length)}`}
          </output>
          <button type="button" aria-label="Next page" disabled={now >= pages - 1} onClick={() => setPage(now + 1)}>
            →
          </button>
        </span>
      </div>
      <Sheet
        of="operations"
        tall
        heads={[
          "operation",
          { number: "start" },
          { number: "end" },
          { number: "latency" },
          "uses",
          { number: "waits for" },
          { number: "is waited for by" },
        ]}
      >
        {rows.map((operation) => (
          <tr
            key={operation.index}
            class={operation.index === chosen ? "selected" : ""}
            data-row={operation.name}
            data-start={operation.start}
            data-end={operation.end}
          >
            <td>
              <button type="button" class="pick" onClick={() => choose(operation.index)}>
                {operation.name}
              </button>
            </td>
            <td class="number">{grouped(operation.start)}</td>
            <td class="number">{grouped(operation.end)}</td>
            <td class="number">{grouped(operation.latency)}</td>
            <td>{operation.uses.map((use) => `${use.amount} ${use.resource}`).join(", ") || "–"}</td>
            <td class="number">{model.incoming[operation.index]?.length ?? 0}</td>
            <td class="number">{model.outgoing[operation.index]?.length ?? 0}</td>
          </tr>
        ))}
      </Sheet>
    </section>
  );
}
