// The selected operation: what it waits for, what waits for it, and its barriers.
import type { Code } from "../data";
import { handshakesOf } from "../model/barriers";
import type { Dependence, LoopModel, Operation } from "../model/loop";
import { slack, startOf } from "../model/loop";
import { selection, useStore, wholeChain } from "../state";
import { grouped } from "../words";
import { Barriers } from "./barriers";
import { operationTip } from "./bars";
import { Pick } from "./pick";
import { Sheet } from "./sheet";

function Neighbours(properties: { loop: LoopModel; at: number; edges: Dependence[]; backward: boolean }) {
  const { loop, at, edges, backward } = properties;
  if (edges.length === 0) return <p class="note">{backward ? "It waits for nothing." : "Nothing waits for it."}</p>;
  return (
    <Sheet
      heads={[
        backward ? "waits for" : "is waited for by",
        { number: "iteration" },
        { number: backward ? "issued at" : "issues at" },
        { number: "delay" },
        { number: "slack" },
        "kind",
      ]}
    >
      {edges.map((edge, index) => {
        const other = backward ? edge.from : edge.to;
        const iteration = at + (backward ? -edge.distance : edge.distance);
        const kinds = [edge.value ? "value" : "order"];
        if (edge.blocking) kinds.push("blocking");
        if (edge.from.group !== edge.to.group) kinds.push(`group ${edge.from.group} → ${edge.to.group}`);
        if (edge.distance > 0) kinds.push(`distance ${edge.distance}`);
        const left = slack(loop, edge);
        return (
          <tr key={index}>
            <td>{iteration >= 0 ? <Pick loop={loop} operation={other} iteration={iteration} /> : other.name}</td>
            <td class="number">{iteration >= 0 ? iteration : "before the loop"}</td>
            <td class="number">{iteration >= 0 ? grouped(startOf(loop, other, iteration)) : "–"}</td>
            <td class="number">{grouped(edge.delay)}</td>
            <td class="number">{left === 0 ? "0 (tight)" : grouped(left)}</td>
            <td>{kinds.join(", ")}</td>
          </tr>
        );
      })}
    </Sheet>
  );
}

const MOST_LINES = 8;

/** The lines of the code that belong to an operation. */
function Snippet({ code, loop, operation }: { code: Code; loop: LoopModel; operation: Operation }) {
  const numbers = (code.lines ?? [])
    .filter((mark) => mark.loop === loop.index && mark.operation === operation.name)
    .map((mark) => mark.line);
  if (numbers.length === 0) return null;
  const text = code.text.split("\n");
  return (
    <div class="snippet">
      <p class="note">
        In <a href="#code">{code.file}</a>
        {numbers.length > MOST_LINES && `, ${numbers.length} lines, of which ${MOST_LINES} are shown`}:
      </p>
      <pre>
        {numbers
          .slice(0, MOST_LINES)
          .map((number) => `${String(number).padStart(5)}  ${(text[number - 1] ?? "").trim()}\n`)}
      </pre>
    </div>
  );
}

/** The selection, if it is of this loop. */
export function Details({ loop, code }: { loop: LoopModel; code: Code | null }) {
  const at = useStore(selection);
  const whole = useStore(wholeChain);
  const operation = at?.loop === loop.index ? loop.byName.get(at.operation) : undefined;
  if (!at || !operation) {
    return (
      <p class="note" role="status">
        Select an operation to light up what it waits for, what waits for it, and its barriers.
      </p>
    );
  }
  const tip = operationTip(loop, operation, at.iteration);
  return (
    <div class="details" role="status" data-selected={operation.name}>
      <header>
        <h4>
          {operation.name} <small>iteration {at.iteration}</small>
        </h4>
        <label>
          <input type="checkbox" checked={whole} onChange={() => wholeChain.set(!whole)} /> whole chain
        </label>
        <button type="button" onClick={() => selection.set(null)}>
          Clear
        </button>
      </header>
      <dl class="facts">
        {tip.rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <div class="columns">
        <Neighbours loop={loop} at={at.iteration} edges={loop.incoming.get(operation) ?? []} backward />
        <Neighbours loop={loop} at={at.iteration} edges={loop.outgoing.get(operation) ?? []} backward={false} />
      </div>
      <Barriers handshakes={handshakesOf(loop, { operation, iteration: at.iteration })} />
      {code && <Snippet code={code} loop={loop} operation={operation} />}
    </div>
  );
}
