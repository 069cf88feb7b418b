// The operations of a dataflow schedule in steps and lanes, on a canvas with a focusable overlay.
import { select } from "d3-selection";
import { zoom, zoomIdentity, type ZoomBehavior, type ZoomTransform } from "d3-zoom";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { hideTip, showTip } from "../chart/tooltip";
import { wheelPower } from "../chart/wheel";
import { ZoomButtons } from "../chart/zoom-buttons";
import { useWidth } from "../parts/curve";
import { themeChanged } from "../theme";
import { count, grouped } from "../words";
import type { DataflowModel, Placed } from "./model";
import { boxOf, coloursOf, type Colours, fieldOf, paint, paintEdges, type View } from "./paint";

const HEIGHT = 620;

interface Properties {
  model: DataflowModel;
  chosen: number | null;
  choose: (index: number | null) => void;
}

function inWords(placed: Placed): string {
  return `${placed.name}, steps ${placed.start} to ${placed.end}, ${placed.resource}, latency ${placed.latency}`;
}

/** The canvas. Arrows walk from operation to operation; the one walked to is an element with its data. */
export function Placement({ model, chosen, choose }: Properties) {
  const [host, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const behaviour = useRef<ZoomBehavior<HTMLCanvasElement, unknown> | null>(null);
  const colours = useRef<Colours | null>(null);
  const [view, setView] = useState<View>({ k: 1, x: 0, y: 0 });
  const [painted, setPainted] = useState(0);
  const [themes, setThemes] = useState(0);
  const field = useMemo(() => fieldOf(model, width, HEIGHT), [model, width]);
  const blockOf = useMemo(
    () => new Map(model.blocks.flatMap((block, index) => block.operations.map((o) => [o.index, index] as const))),
    [model],
  );
  const lit = useMemo(() => {
    if (chosen === null) return null;
    const near = [
      ...(model.incoming[chosen] ?? []).map((e) => e.from),
      ...(model.outgoing[chosen] ?? []).map((e) => e.to),
    ];
    return new Set([chosen, ...near]);
  }, [model, chosen]);

  useEffect(() => {
    const changed = () => setThemes((times) => times + 1);
    themeChanged.add(changed);
    return () => void themeChanged.delete(changed);
  }, []);
  useEffect(() => {
    if (host.current) colours.current = coloursOf(host.current);
  }, [themes]);

  useEffect(() => {
    if (!canvas.current) return;
    const element = canvas.current;
    let frame = 0;
    let next: ZoomTransform = zoomIdentity;
    behaviour.current = zoom<HTMLCanvasElement, unknown>()
      .scaleExtent([1, Math.max(8, 60 / field.lane)])
      .extent([
        [0, 0],
        [field.width, field.height],
      ])
      .translateExtent([
        [0, 0],
        [field.width, field.height],
      ])
      .wheelDelta(wheelPower)
      .clickDistance(4)
      .filter((event: MouseEvent) =>
        event.type === "wheel"
          ? event.ctrlKey || event.metaKey || (host.current?.contains(document.activeElement) ?? false)
          : !event.button && !event.ctrlKey,
      )
      .on("zoom", (event: { transform: ZoomTransform }) => {
        next = event.transform;
        frame ||= requestAnimationFrame(() => {
          frame = 0;
          setView({ k: next.k, x: next.x, y: next.y });
        });
      });
    select(element).call(behaviour.current).on("dblclick.zoom", null);
    return () => cancelAnimationFrame(frame);
  }, [field]);

  useEffect(() => {
    const pen = canvas.current?.getContext("2d");
    if (!pen || !canvas.current || !host.current) return;
    colours.current ??= coloursOf(host.current);
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [Math.round(field.width * ratio), Math.round(field.height * ratio)];
    if (canvas.current.width !== w) canvas.current.width = w;
    if (canvas.current.height !== h) canvas.current.height = h;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = `11px ${getComputedStyle(host.current).fontFamily}`;
    setPainted(paint(pen, model, field, view, colours.current, lit));
    if (chosen !== null) paintEdges(pen, model, field, view, colours.current, chosen);
  }, [model, field, view, lit, chosen, themes]);

  const hit = (event: MouseEvent): Placed | null => {
    const x = (event.offsetX - view.x) / view.k / field.step;
    const y = (event.offsetY - view.y) / view.k;
    for (const [index, block] of model.blocks.entries()) {
      const lane = Math.floor((y - (field.tops[index] ?? 0)) / field.lane);
      if (lane < 0 || lane >= block.lanes) continue;
      return block.operations.find((o) => o.lane === lane && o.start <= x && x < o.end) ?? null;
    }
    return null;
  };
  const tell = (placed: Placed | null, event: MouseEvent) => {
    if (!placed) return hideTip();
    showTip(
      {
        title: placed.name,
        rows: [
          ["steps", `${grouped(placed.start)} to ${grouped(placed.end)}`],
          ["uses", placed.uses.map((use) => `${use.amount} ${use.resource}`).join(", ") || "nothing"],
          ["latency", grouped(placed.latency)],
        ],
      },
      event.currentTarget as Element,
      new DOMRect(event.clientX, event.clientY, 1, 8),
    );
  };
  // A finger that moves scrolls; one that taps clicks.
  const hover = (event: PointerEvent) =>
    event.pointerType !== "touch" && tell(event.buttons === 0 ? hit(event) : null, event);
  const leave = (event: PointerEvent) => event.pointerType !== "touch" && hideTip();
  const click = (event: MouseEvent) => {
    const placed = hit(event);
    choose(placed?.index ?? null);
    tell(placed, event);
  };
  const scale = (factor: number) => canvas.current && behaviour.current?.scaleBy(select(canvas.current), factor);
  const pan = (x: number, y: number) =>
    canvas.current && behaviour.current?.translateBy(select(canvas.current), x / view.k, y / view.k);
  const reset = () => canvas.current && behaviour.current?.transform(select(canvas.current), zoomIdentity);
  const walk = (step: number, lanes: number) => {
    const at = model.operations[chosen ?? -1];
    if (!at) return choose(model.blocks[0]?.operations[0]?.index ?? null);
    const block = model.blocks[blockOf.get(at.index) ?? 0];
    const row = (block?.operations ?? []).filter((o) =>
      lanes === 0 ? o.lane === at.lane : o.lane === at.lane + lanes,
    );
    const distance = (o: Placed) => Math.abs(o.start - at.start);
    const sorted = row.sort((a, b) => a.start - b.start);
    const next = lanes === 0 ? sorted[sorted.indexOf(at) + step] : sorted.sort((a, b) => distance(a) - distance(b))[0];
    if (next) choose(next.index);
  };
  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves: Record<string, () => void> = {
      "+": () => scale(1.5),
      "=": () => scale(1.5),
      "-": () => scale(1 / 1.5),
      "0": reset,
      Escape: () => choose(null),
      Enter: () => chosen === null && walk(0, 0),
      ArrowLeft: () => (chosen === null || event.shiftKey ? pan(120, 0) : walk(-1, 0)),
      ArrowRight: () => (chosen === null || event.shiftKey ? pan(-120, 0) : walk(1, 0)),
      ArrowUp: () => (chosen === null || event.shiftKey ? pan(0, 90) : walk(0, -1)),
      ArrowDown: () => (chosen === null || event.shiftKey ? pan(0, -90) : walk(0, 1)),
    };
    const move = Object.hasOwn(moves, event.key) ? moves[event.key] : undefined;
    if (!move) return;
    event.preventDefault();
    move();
  };
  const at = chosen === null ? undefined : model.operations[chosen];
  const box = at ? boxOf(field, view, blockOf.get(at.index) ?? 0, at) : null;
  return (
    <div class="chart-frame">
      <div class="tools">
        <span class="hint">Ctrl + wheel or pinch zooms, drag pans; keys: + − 0 arrows, Enter, Esc</span>
        <ZoomButtons zoomBy={scale} reset={reset} />
      </div>
      <div
        class="placement"
        ref={host}
        tabindex={0}
        role="application"
        aria-label={`Schedule of ${count(model.operations.length, "operation")} in ${count(model.end, "step")}. Arrows walk; the table has the same in text.`}
        data-zoom={view.k.toFixed(3)}
        data-painted={painted}
        onKeyDown={key}
      >
        <canvas
          ref={canvas}
          style={{ width: `${field.width}px`, height: `${field.height}px` }}
          onPointerMove={hover}
          onPointerLeave={leave}
          onClick={click}
          onDblClick={reset}
        />
        {at && box && (
          <div
            class="cursor"
            role="status"
            aria-label={inWords(at)}
            data-operation={at.name}
            data-start={at.start}
            data-end={at.end}
            style={{
              left: `${box[0]}px`,
              top: `${box[1]}px`,
              width: `${Math.max(3, box[2])}px`,
              height: `${Math.max(3, box[3])}px`,
            }}
          />
        )}
      </div>
    </div>
  );
}
