// Why the interval is what it is: its bound, what excluded smaller ones, and what would change it.
import type { ExplanationFile, Loop, Member } from "../data";
import { count, grouped, signed, spelled } from "../words";

function Conflict({ member, minimal }: { member: Member; minimal: boolean }) {
  const name = `${spelled(member.family)}${member.unit ? ` ${member.unit}` : ""}`;
  return (
    <li>
      <strong>{name}</strong>
      {minimal && member.needed && <span class="note"> needed for the conflict: proved</span>}
      {member.demands.map((demand, index) => (
        <div key={index}>
          {spelled(demand.quantity)}: {demand.required == null ? "no amount is enough" : `${grouped(demand.required)} needed`},{" "}
          {grouped(demand.available)} at hand
          {demand.suffices && " (and then the interval is feasible)"}
        </div>
      ))}
      {member.breaches.length > 0 && (
        <details>
          <summary>
            The best without it breaks it {count(member.breaches.length, "time")}
          </summary>
          <ul>
            {member.breaches.map((breach, index) => (
              <li key={index}>{breach.violation.replaceAll("`", "")}</li>
            ))}
          </ul>
        </details>
      )}
    </li>
  );
}

function LargestExcluded({ explanation }: { explanation: ExplanationFile }) {
  const last = explanation.rejections?.at(-1);
  if (!last) return null;
  const { interval, conflict } = last;
  return (
    <>
      <h4>Why not I = {grouped(interval)}</h4>
      <p>
        No schedule keeps {conflict.members.length === 1 ? "this constraint" : `all ${conflict.members.length} of these constraints`}
        {last.smaller_too && ", here or at any smaller interval"}.
      </p>
      <ul class="conflict">
        {conflict.members.map((member, index) => (
          <Conflict key={index} member={member} minimal={conflict.minimal} />
        ))}
      </ul>
    </>
  );
}

function Rejected({ rejected }: { rejected: { intervals: string; why: string }[] }) {
  if (rejected.length === 0) return null;
  return (
    <div class="scroll">
      <table class="rejected">
        <caption>Intervals that were excluded</caption>
        <thead>
          <tr>
            <th>I</th>
            <th>why</th>
          </tr>
        </thead>
        <tbody>
          {rejected.map((entry, index) => {
            const [first, ...rest] = entry.why.split("\n");
            return (
              <tr key={index}>
                <td>{entry.intervals}</td>
                <td>
                  {rest.length === 0 ? (
                    first
                  ) : (
                    <details>
                      <summary>{first}</summary>
                      {rest.map((line, at) => (
                        <p key={at}>{line}</p>
                      ))}
                    </details>
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function WhatIfs({ data }: { data: Loop }) {
  const answers = data.what_ifs ?? [];
  if (answers.length === 0) return null;
  const figures = data.explanation?.what_ifs ?? [];
  // The same changes in the same order, as figures.
  const paired = figures.length === answers.length;
  return (
    <div class="scroll">
      <table class="what-ifs">
        <caption>What if</caption>
        <thead>
          <tr>
            <th>change</th>
            {paired && <th class="number">I</th>}
            {paired && <th class="number">by</th>}
            <th>answer</th>
          </tr>
        </thead>
        <tbody>
          {answers.map((entry, index) => {
            const figure = paired ? figures[index] : undefined;
            const by = figure?.percent;
            return (
              <tr key={index}>
                <td>{entry.change}</td>
                {paired && <td class="number">{figure?.initiation_interval ? grouped(figure.initiation_interval) : "–"}</td>}
                {paired && <td class={`number ${by && by < 0 ? "good" : ""}`}>{by ? signed(by) : "no change"}</td>}
                <td>{entry.answer}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** The explanation of a loop. */
export function Explanation({ data, index }: { data: Loop; index: number }) {
  return (
    <section id={`explanation-${index}`} class="part">
      <h3>Why no faster</h3>
      <p class="bound">
        I ≥ {grouped(data.schedule.lower_bound.interval)}: {data.bound}
      </p>
      {data.explanation && <LargestExcluded explanation={data.explanation} />}
      <Rejected rejected={data.rejected ?? []} />
      <WhatIfs data={data} />
    </section>
  );
}
