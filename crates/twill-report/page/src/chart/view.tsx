// A chart as a component, with its buttons and its tooltip.
import { useLayoutEffect, useRef } from "preact/hooks";
import { selection, toggle } from "../state";
import { hideTip, showTip } from "./tooltip";
import { Chart } from "./chart";
import type { ChartSpec, Lighting } from "./spec";
import { ZoomButtons } from "./zoom-buttons";
import type { ComponentChildren } from "preact";

interface Properties {
  spec: ChartSpec;
  lighting: Lighting;
  children?: ComponentChildren;
}

/** A chart with zoom buttons; `children` stand next to them. */
export function ChartView({ spec, lighting, children }: Properties) {
  const host = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | null>(null);
  useLayoutEffect(() => {
    if (!host.current) return;
    const tip: Chart["events"]["tip"] = (text, of) => (text && of ? showTip(text, of) : hideTip());
    const before = chart.current?.places();
    chart.current = new Chart(host.current, spec, { tip, pick: toggle, clear: () => selection.set(null) });
    if (before) chart.current.moveFrom(before);
    return () => chart.current?.destroy();
  }, [spec]);
  useLayoutEffect(() => chart.current?.light(lighting), [spec, lighting]);
  return (
    <div class="chart-frame">
      <div class="tools">
        {children}
        <ZoomButtons zoomBy={(factor) => chart.current?.zoomBy(factor)} reset={() => chart.current?.reset()} />
      </div>
      <div class="chart-host" ref={host} />
    </div>
  );
}
