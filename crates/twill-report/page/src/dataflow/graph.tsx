// The dataflow graph in figures: it is too large to be drawn.
import { useMemo } from "preact/hooks";
import { count, grouped } from "../words";
import type { DataflowModel } from "./model";

interface Summary {
  inputs: number;
  outputs: number;
  between: number;
  layers: number;
  mostIn: number;
  mostOut: number;
}

function longestPath(model: DataflowModel): number {
  const degree = model.operations.map((_, k) => (model.incoming[k] ?? []).filter((edge) => edge.distance === 0).length);
  const depth = new Array<number>(degree.length).fill(1);
  const ready = degree.flatMap((edges, k) => (edges === 0 ? [k] : []));
  for (let at = ready.pop(); at !== undefined; at = ready.pop()) {
    for (const edge of model.outgoing[at] ?? []) {
      if (edge.distance > 0) continue;
      depth[edge.to] = Math.max(depth[edge.to] ?? 1, (depth[at] ?? 1) + 1);
      degree[edge.to] = (degree[edge.to] ?? 0) - 1;
      if (degree[edge.to] === 0) ready.push(edge.to);
    }
  }
  return depth.reduce((most, value) => Math.max(most, value), 0);
}

function summary(model: DataflowModel): Summary {
  const most = (edges: unknown[][]) => edges.reduce((least, list) => Math.max(least, list.length), 0);
  return {
    inputs: model.incoming.filter((edges) => edges.length === 0).length,
    outputs: model.outgoing.filter((edges) => edges.length === 0).length,
    between: model.edges.filter((edge) => edge.distance > 0).length,
    layers: longestPath(model),
    mostIn: most(model.incoming),
    mostOut: most(model.outgoing),
  };
}

/** A summary of the graph. */
export function GraphFigures({ model }: { model: DataflowModel }) {
  const found = useMemo(() => summary(model), [model]);
  return (
    <section id="dataflow-graph" class="part">
      <h3>Graph</h3>
      <p>
        {count(model.operations.length, "operation")} and {count(model.edges.length, "dependence")},{" "}
        {grouped(found.between)} of them between iterations. The longest path has {count(found.layers, "operation")};{" "}
        {grouped(found.inputs)} wait for nothing, and nothing waits for {grouped(found.outputs)}. An operation waits for
        at most {grouped(found.mostIn)}, and at most {grouped(found.mostOut)} wait for one. Graphs of dataflow schedules
        are not drawn: select an operation to see its neighbours.
      </p>
    </section>
  );
}
