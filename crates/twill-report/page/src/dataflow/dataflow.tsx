// The report of a dataflow schedule (GauS): figures, resources, placement, graph, operations.
import { useMemo, useState } from "preact/hooks";
import type { DataflowFile } from "../data";
import { Curve } from "../parts/curve";
import { HUES } from "../parts/bars";
import { Figure } from "../parts/figure";
import { Seconds } from "../parts/solved";
import { Sheet } from "../parts/sheet";
import { count, grouped } from "../words";
import { dataflowModel, NO_RESOURCE, occupancy, storage, type DataflowModel } from "./model";
import { Placement } from "./placement";
import { GraphFigures } from "./graph";
import { Chosen, OperationTable } from "./table";

function Figures({ file, model }: { file: DataflowFile; model: DataflowModel }) {
  const summary = file.summary ?? {};
  const objective = summary.objective;
  return (
    <dl class="figures">
      {objective && <Figure name={`objective: ${objective.kind}`} value={grouped(objective.value)} />}
      {objective && (
        <Figure
          name="lower bound"
          value={grouped(objective.lower_bound)}
          note={objective.value <= objective.lower_bound ? "reached: nothing is better" : undefined}
        />
      )}
      <Figure
        name="latency"
        value={grouped(summary.latency ?? model.end)}
        note={file.latency_bound == null ? "steps" : `steps, at most ${grouped(file.latency_bound)}`}
      />
      {file.interval != null && <Figure name="initiation interval" value={grouped(file.interval)} note="steps" />}
      <Figure name="operations" value={grouped(model.operations.length)} />
      <Figure name="dependences" value={grouped(model.edges.length)} />
      {summary.communication !== undefined && <Figure name="communication" value={grouped(summary.communication)} />}
      {summary.storage !== undefined && <Figure name="peak storage" value={grouped(summary.storage)} />}
      {summary.engine && <Figure name="engine" value={summary.engine} note={`seed ${summary.seed ?? "–"}`} />}
    </dl>
  );
}

function Occupancy({ model }: { model: DataflowModel }) {
  const curves = useMemo(
    () => ({
      resources: model.blocks
        .filter((block) => block.resource !== NO_RESOURCE)
        .map((block) => ({ block, steps: occupancy(model, block.resource) })),
      storage: storage(model),
    }),
    [model],
  );
  const end = model.interval ?? model.end;
  return (
    <section id="occupancy" class="part">
      <h3>Resources by step</h3>
      {model.interval !== null && <p class="note">Folded modulo the interval of {count(model.interval, "step")}.</p>}
      <div class="grid">
        {curves.resources.map(({ block, steps }, index) => (
          <Curve
            key={block.resource}
            title={block.resource}
            steps={steps}
            end={end}
            limits={block.limit === null ? [] : [{ name: "limit", value: block.limit }]}
            unit="in use"
            axis="step"
            tone={`group-${index % HUES}`}
          />
        ))}
        <Curve title="storage" steps={curves.storage} end={end} limits={[]} unit="live" axis="step" tone="group-5" />
      </div>
    </section>
  );
}

function Progress({ file }: { file: DataflowFile }) {
  const trace = file.summary?.trace ?? [];
  const phases = file.summary?.seconds ?? {};
  const last = trace.at(-1);
  return (
    <section class="part" id="progress">
      <h3>How it was found</h3>
      <div class="columns">
        <Seconds phases={phases} />
        {last && (
          <Sheet caption="Objective over time" heads={[{ number: "seconds" }, { number: "value" }]}>
            {trace.slice(-24).map(([at, value], index) => (
              <tr key={index}>
                <td class="number">{at.toFixed(3)}</td>
                <td class="number">{grouped(value)}</td>
              </tr>
            ))}
          </Sheet>
        )}
      </div>
    </section>
  );
}

/** The whole report of a dataflow schedule. */
export function Dataflow({ file }: { file: DataflowFile }) {
  const model = useMemo(() => dataflowModel(file), [file]);
  const [chosen, choose] = useState<number | null>(null);
  return (
    <article class="dataflow">
      <Figures file={file} model={model} />
      <Occupancy model={model} />
      <section id="placement" class="part">
        <h3>Schedule</h3>
        <p class="note">Each operation in its step, above each other by the resource that it uses first.</p>
        <Placement model={model} chosen={chosen} choose={choose} />
        <Chosen model={model} chosen={chosen} choose={choose} />
      </section>
      <GraphFigures model={model} />
      <Progress file={file} />
      <OperationTable model={model} chosen={chosen} choose={choose} />
    </article>
  );
}
