// How the schedule was found: what was minimised, how long it took, under which options.
import type { Objective, ScheduleFile } from "../data";
import { grouped, seconds, spelled } from "../words";
import { Sheet } from "./sheet";

/** The minimised quantities, with the state of their proofs. */
export function Objectives({ objectives }: { objectives: Objective[] }) {
  if (objectives.length === 0) return null;
  return (
    <Sheet of="objectives" caption="Least in this order, after I" heads={["objective", { number: "value" }, "least"]}>
      {objectives.map((objective, index) => (
        <tr key={index}>
          <td>
            {spelled(objective.level)}
            {objective.loop != null && ` of loop ${objective.loop + 1}`}
          </td>
          <td class="number">{grouped(objective.value)}</td>
          <td>{objective.proved ? "proved" : "not proved"}</td>
        </tr>
      ))}
    </Sheet>
  );
}

/** Where the time went. */
export function Seconds({ phases }: { phases: Record<string, number> }) {
  const entries = Object.entries(phases);
  if (entries.length === 0) return null;
  const most = Math.max(...entries.map(([, value]) => value), 1e-9);
  return (
    <Sheet of="seconds" caption="Time by phase">
      {entries.map(([name, value]) => (
        <tr key={name}>
          <td>{spelled(name)}</td>
          <td class="number">{seconds(value)}</td>
          <td class="wide" aria-hidden="true">
            <meter min={0} max={most} value={value} />
          </td>
        </tr>
      ))}
    </Sheet>
  );
}

function said(value: unknown): string {
  if (value === true) return "on";
  if (value === false) return "off";
  return typeof value === "string" ? spelled(value) : String(value);
}

/** How a loop was solved. */
export function Solved({ schedule, index }: { schedule: ScheduleFile; index: number }) {
  const options = Object.entries(schedule.problem.options ?? {});
  const { modulo, normalisation } = schedule;
  return (
    <section id={`solved-${index}`} class="part">
      <h3>How it was solved</h3>
      {modulo && (
        <p class="note">
          Without warps the least interval is {grouped(modulo.initiation_interval)}, with L{" "}
          {modulo.length_proved ? "=" : "≤"} {grouped(modulo.length)}.
        </p>
      )}
      {normalisation && (
        <p class="note">
          Costs were normalised to at most {normalisation.limit}: all cycles are normalised ones, and ratios of costs
          changed by a factor of at most {normalisation.distortion.toFixed(3)}.
        </p>
      )}
      <div class="columns">
        <Objectives objectives={schedule.objectives ?? []} />
        <Seconds phases={schedule.seconds ?? {}} />
        {options.length > 0 && (
          <Sheet of="options" caption="Options of the model">
            {options.map(([name, value]) => (
              <tr key={name}>
                <td>{spelled(name)}</td>
                <td>{said(value)}</td>
              </tr>
            ))}
          </Sheet>
        )}
      </div>
    </section>
  );
}
