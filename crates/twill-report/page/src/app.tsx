// The page: headline, then a part for each loop, or the schedule of a dataflow graph.
import { useMemo } from "preact/hooks";
import type { Loop, Page } from "./data";
import { Dataflow } from "./dataflow/dataflow";
import { loopModel, type LoopModel } from "./model/loop";
import { CodeView } from "./parts/code";
import { Explanation } from "./parts/explanation";
import { DependenceGraph } from "./parts/graph";
import { Cycles, Registers as AssembledRegisters, Warning } from "./parts/cycles";
import { boundInWords, KernelFigures, LoopFigures, pageStatus, Status } from "./parts/headline";
import { Measured } from "./parts/measured";
import { Objectives, Seconds, Solved } from "./parts/solved";
import { useMore } from "./parts/scroll";
import { Steady } from "./parts/steady";
import { Channels, Memories, Registers } from "./parts/storage";
import { Operations } from "./parts/table";
import { Timeline } from "./parts/timeline";
import { ThemeButton } from "./theme";
import { count } from "./words";

interface LoopProperties {
  page: Page;
  data: Loop;
  loop: LoopModel | null;
  index: number;
}

function LoopPart({ page, data, loop, index }: LoopProperties) {
  const { graph } = data.schedule.problem;
  const trace = page.trace?.loops.find((entry) => entry.loop === index);
  return (
    <article id={`loop-${index}`} aria-labelledby={`loop-title-${index}`}>
      <header class="loop-head">
        <h2 id={`loop-title-${index}`}>
          {page.loops.length > 1 ? `Loop ${index + 1} of ${page.loops.length}` : "The loop"}
          <small>
            {graph.name}, {count(graph.operations.length, "operation")}
          </small>
        </h2>
        {page.loops.length > 1 && <Status status={data.schedule.status} machine={page.machine} />}
      </header>
      {loop && <Cycles page={page} data={data} loop={loop} />}
      {loop && <Warning page={page} data={data} loop={loop} />}
      <LoopFigures data={data} loop={loop} />
      <p class="bound">
        <span>Bound</span> {boundInWords(data)}
      </p>
      {loop && <Timeline loop={loop} code={page.code ?? null} />}
      {loop && trace && page.trace && <Measured loop={loop} trace={trace} of={page.trace} />}
      {loop && <Steady loop={loop} />}
      {loop && <Registers loop={loop} data={data} />}
      {loop && <Memories loop={loop} data={data} />}
      {loop && <Channels loop={loop} />}
      {loop && <DependenceGraph loop={loop} />}
      <Explanation data={data} index={index} />
      <Solved schedule={data.schedule} index={index} />
      {loop && <Operations loop={loop} />}
    </article>
  );
}

function Contents({ page, loops }: { page: Page; loops: (LoopModel | null)[] }) {
  const links: [string, string][] = [];
  const traced = (index: number) => page.trace?.loops.some((entry) => entry.loop === index);
  loops.forEach((loop, index) => {
    if (loops.length > 1) links.push([`loop-${index}`, `Loop ${index + 1}`]);
    if (loop) links.push([`timeline-${index}`, "Timeline"]);
    if (loop && traced(index)) links.push([`measured-${index}`, "Measured"]);
    if (loop) links.push([`steady-${index}`, "Steady state"]);
    if (loop) links.push([`graph-${index}`, "Graph"]);
    links.push([`explanation-${index}`, "Why no faster"]);
    links.push([`solved-${index}`, "Solved"]);
    if (loop) links.push([`operations-${index}`, "Operations"]);
  });
  if (page.code) links.push(["code", "Code"]);
  if (page.dataflow) {
    links.push(
      ["occupancy", "Resources"],
      ["placement", "Schedule"],
      ["dataflow-graph", "Graph"],
      ["dataflow-table", "Operations"],
    );
  }
  const [pane, more] = useMore<HTMLElement>();
  return (
    <nav aria-label="Parts of the report" ref={pane} data-more={more}>
      {links.map(([id, name]) => (
        <a key={id} href={`#${id}`} class={name.startsWith("Loop ") ? "loop" : ""}>
          {name}
        </a>
      ))}
    </nav>
  );
}

/** The whole page. */
export function App({ page }: { page: Page }) {
  const loops = useMemo(() => page.loops.map(loopModel), [page]);
  const drawn = loops.filter((loop): loop is LoopModel => loop !== null);
  const status = pageStatus(page);
  const { kernel } = page;
  return (
    <>
      <a class="skip" href="#main">
        Skip to the report
      </a>
      <header class="top">
        <div class="brand">
          <strong>{page.name}</strong>
          {page.machine && <span>on {page.machine}</span>}
        </div>
        <Contents page={page} loops={loops} />
        <ThemeButton />
      </header>
      <main id="main">
        <section class="headline">
          <h1>{page.name}</h1>
          {status && <Status status={status} machine={page.machine} />}
          {drawn.length < Math.max(1, page.loops.length) && <p>{page.headline}</p>}
          {page.loops.length > 1 && (
            <dl class="figures">
              {kernel && <KernelFigures kernel={kernel} />}
              <AssembledRegisters page={page} />
            </dl>
          )}
        </section>
        {page.loops.map((data, index) => (
          <LoopPart key={index} page={page} data={data} loop={loops[index] ?? null} index={index} />
        ))}
        {page.dataflow && <Dataflow file={page.dataflow} />}
        {page.code && <CodeView code={page.code} loops={drawn} />}
        {kernel && (
          <section id="kernel" class="part">
            <h3>How the loops were solved together</h3>
            <div class="columns">
              <Objectives objectives={kernel.objectives ?? []} />
              <Seconds phases={kernel.seconds ?? {}} />
            </div>
          </section>
        )}
      </main>
      <footer>
        Made by twill {page.twill}. The data of this report are in it, packed; twill report --format json writes them.
      </footer>
    </>
  );
}
