// Layers of the dependence graph. Dependences within an iteration decide them; back edges only pass through.
import { Graph, layout } from "@dagrejs/dagre";
import type { Dependence, LoopModel, Operation } from "../model/loop";
import { textWidth } from "../chart/svg";

/** More operations than this are told in words. */
export const MOST_OPERATIONS = 400;

/** An operation's box; `x` and `y` are its middle. */
export interface Box {
  operation: Operation;
  x: number;
  y: number;
  width: number;
  height: number;
}

/** A dependence's line. */
export interface Line {
  dependence: Dependence;
  path: string;
  /** Where its distance stands. */
  label: { x: number; y: number };
}

/** The drawn graph. */
export interface Drawing {
  width: number;
  height: number;
  boxes: Box[];
  lines: Line[];
}

const HEIGHT = 34;

function forward(points: { x: number; y: number }[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let path = `M${first.x},${first.y}`;
  let before = first;
  for (const point of rest) {
    const middle = (before.y + point.y) / 2;
    path += `C${before.x},${middle} ${point.x},${middle} ${point.x},${point.y}`;
    before = point;
  }
  return path;
}

function backward(from: Box, to: Box): Line["path"] {
  if (from === to) {
    const right = from.x + from.width / 2;
    return `M${right},${from.y - 7}c26,-12 26,26 0,14`;
  }
  // Round the right-hand side, further out the further up it goes.
  const x0 = from.x + from.width / 2;
  const x1 = to.x + to.width / 2;
  const out = Math.max(x0, x1) + 24 + Math.min(90, Math.abs(from.y - to.y) / 5);
  return `M${x0},${from.y}C${out},${from.y} ${out},${to.y} ${x1},${to.y}`;
}

/** Lays the graph of a loop out. */
export function draw(loop: LoopModel): Drawing {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: 16, ranksep: 34, marginx: 12, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const operation of loop.operations) {
    const width = Math.max(74, textWidth(operation.name) + 22);
    graph.setNode(String(operation.index), { width, height: HEIGHT });
  }
  loop.dependences.forEach((dependence, index) => {
    if (dependence.distance > 0 || dependence.from === dependence.to) return;
    graph.setEdge(String(dependence.from.index), String(dependence.to.index), {}, String(index));
  });
  layout(graph);
  const boxes = loop.operations.map((operation): Box => {
    const node = graph.node(String(operation.index)) as { x: number; y: number; width: number };
    return { operation, x: node.x, y: node.y, width: node.width, height: HEIGHT };
  });
  let [width, height] = [0, 0];
  for (const box of boxes) {
    width = Math.max(width, box.x + box.width / 2);
    height = Math.max(height, box.y + box.height / 2);
  }
  const lines = loop.dependences.map((dependence, index): Line => {
    const from = boxes[dependence.from.index];
    const to = boxes[dependence.to.index];
    if (!from || !to) return { dependence, path: "", label: { x: 0, y: 0 } };
    if (dependence.distance > 0 || from === to) {
      const reach = from === to ? 28 : 18 + Math.min(68, Math.abs(from.y - to.y) / 6.6);
      const x = Math.max(from.x + from.width / 2, to.x + to.width / 2) + reach;
      width = Math.max(width, x + 14);
      return { dependence, path: backward(from, to), label: { x: x - 4, y: (from.y + to.y) / 2 + 4 } };
    }
    const edge = graph.edge(String(from.operation.index), String(to.operation.index), String(index)) as {
      points: { x: number; y: number }[];
    };
    const ends = [
      { x: from.x, y: from.y + HEIGHT / 2 },
      ...edge.points.slice(1, -1),
      { x: to.x, y: to.y - HEIGHT / 2 },
    ];
    return { dependence, path: forward(ends), label: { x: 0, y: 0 } };
  });
  return { width: width + 12, height: height + 12, boxes, lines };
}
