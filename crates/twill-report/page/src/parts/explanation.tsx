// Why the interval is what it is: its bound, what excluded smaller ones, and what would change it.
import type { ExplanationFile, Loop } from "../data";
import { grouped, signed, spelled } from "../words";
import { boundInWords } from "./headline";
import { Sheet } from "./sheet";

/** Words that the families of a conflict begin their lines with. */
function familiesOf(explanation: ExplanationFile | null | undefined): Set<string> {
  const members = (explanation?.rejections ?? []).flatMap((rejection) => rejection.conflict.members);
  return new Set(members.flatMap((member) => [member.family, spelled(member.family)]));
}

/** Why an interval was excluded, at length: a paragraph, then each constraint with how it is broken. */
function AtLength({ lines, families }: { lines: string[]; families: Set<string> }) {
  return (
    <div class="at-length">
      {lines.map((line, index) => {
        const head = line.slice(0, Math.max(0, line.indexOf(":")));
        const family = [...families].some((name) => head === name || head.startsWith(`${name} `));
        if (!family) return <p key={index}>{line}</p>;
        return (
          <p key={index} class="family">
            <strong>{head}</strong>
            {line.slice(head.length)}
          </p>
        );
      })}
    </div>
  );
}

function Rejected({ data }: { data: Loop }) {
  const rejected = data.rejected ?? [];
  if (rejected.length === 0) return null;
  const families = familiesOf(data.explanation);
  const long = rejected.filter((entry) => entry.why.includes("\n"));
  const short = rejected.filter((entry) => !entry.why.includes("\n"));
  return (
    <>
      {long.map((entry, index) => {
        const [first, ...rest] = entry.why.split("\n");
        return (
          <div key={index} class="rejection">
            <h4>Why not {entry.intervals}</h4>
            <p>{first}</p>
            <AtLength lines={rest} families={families} />
          </div>
        );
      })}
      {short.length > 0 && (
        <Sheet
          of="rejected"
          tall
          caption={long.length > 0 ? "Smaller intervals that were asked about" : "Intervals that were excluded"}
          heads={["intervals", "why"]}
        >
          {short.map((entry, index) => (
            <tr key={index}>
              <td>{entry.intervals}</td>
              <td class="wrap">{entry.why}</td>
            </tr>
          ))}
        </Sheet>
      )}
    </>
  );
}

function WhatIfs({ data }: { data: Loop }) {
  const answers = data.what_ifs ?? [];
  if (answers.length === 0) return null;
  const figures = data.explanation?.what_ifs ?? [];
  // The same changes in the same order, as figures.
  const paired = figures.length === answers.length;
  return (
    <Sheet
      of="what-ifs"
      caption="What if"
      heads={[
        "change",
        ...(paired ? [{ number: "I" }] : []),
        ...(paired ? [{ number: "by" }] : []),
        paired ? "why" : "answer",
      ]}
    >
      {answers.map((entry, index) => {
        const figure = paired ? figures[index] : undefined;
        const by = figure?.percent;
        // The words after the figures say why.
        const why = figure?.initiation_interval ? entry.answer.slice(entry.answer.indexOf(": ") + 2) : entry.answer;
        return (
          <tr key={index}>
            <td class="wrap">{entry.change}</td>
            {paired && (
              <td class="number">{figure?.initiation_interval ? grouped(figure.initiation_interval) : "–"}</td>
            )}
            {paired && (
              <td class={`number ${by && by < 0 ? "good" : ""}`}>
                {by == null ? "–" : by === 0 ? "no change" : signed(by)}
              </td>
            )}
            <td class="wrap">{why}</td>
          </tr>
        );
      })}
    </Sheet>
  );
}

/** The explanation of a loop. */
export function Explanation({ data, index }: { data: Loop; index: number }) {
  return (
    <section id={`explanation-${index}`} class="part">
      <h3>{data.schedule.operations?.length ? "Why no faster" : "Why there is no schedule"}</h3>
      <p class="bound">{boundInWords(data)}</p>
      <Rejected data={data} />
      <WhatIfs data={data} />
    </section>
  );
}
