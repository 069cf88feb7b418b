// The generated code next to its schedule.
import { useEffect, useMemo } from "preact/hooks";
import type { Code } from "../data";
import type { LoopModel } from "../model/loop";
import { selection, useStore } from "../state";
import { grouped } from "../words";
import { HUES } from "./bars";
import { highlighted } from "./highlight";
import { Pick } from "./pick";
import { useMore } from "./scroll";

type Marks = Map<number, { loop: number; operation: string }[]>;

function Order({ loops }: { loops: LoopModel[] }) {
  const at = useStore(selection);
  const [pane, more] = useMore<HTMLDivElement>();
  return (
    <div class="scroll-frame" data-more={more}>
      <div class="order" ref={pane} tabindex={0} role="region" aria-label="Operations by issue cycle">
        {loops.map((loop) => (
          <table key={loop.index}>
            <caption>{loops.length > 1 ? `Loop ${loop.index + 1}` : "By issue cycle"}</caption>
            <tbody>
              {[...loop.operations]
                .sort((a, b) => a.cycle - b.cycle)
                .map((operation) => {
                  const chosen = at?.loop === loop.index && at.operation === operation.name;
                  return (
                    <tr key={operation.name} class={chosen ? "selected" : ""}>
                      <td class="number">{grouped(operation.cycle)}</td>
                      <td>
                        <Pick loop={loop} operation={operation} pressed={chosen} />
                      </td>
                      <td>
                        <span class={`swatch group-${operation.group % HUES}`}>g{operation.group}</span>
                      </td>
                    </tr>
                  );
                })}
            </tbody>
          </table>
        ))}
      </div>
    </div>
  );
}

function Text({ code, marks }: { code: Code; marks: Marks }) {
  const at = useStore(selection);
  const [pane, more] = useMore<HTMLDivElement>();
  const lines = useMemo(() => highlighted(code.text, code.language), [code]);
  const chosen = (line: number) =>
    at !== null && (marks.get(line) ?? []).some((mark) => mark.loop === at.loop && mark.operation === at.operation);
  useEffect(() => {
    // Before anything is selected, the first line that belongs to an operation.
    const line = pane.current?.querySelector<HTMLElement>(at === null ? ".line button" : ".line.selected");
    // The pane alone scrolls: the page stays where its reader is.
    if (line && pane.current) pane.current.scrollTop = line.offsetTop - pane.current.clientHeight / 3;
  }, [at]);
  return (
    <div class="scroll-frame" data-more={more}>
      <div class="code" ref={pane} tabindex={0} role="region" aria-label={`Code of ${code.file}`}>
        <ol>
          {lines.map((pieces, index) => {
            const here = marks.get(index + 1) ?? [];
            const words = pieces.map((piece, k) =>
              piece.kind === "" ? (
                piece.text
              ) : (
                <span key={k} class={piece.kind}>
                  {piece.text}
                </span>
              ),
            );
            const first = here[0];
            const next = () => {
              // Each click goes on to the next operation of the line.
              const now = here.findIndex((mark) => mark.loop === at?.loop && mark.operation === at.operation);
              const mark = here[(now + 1) % here.length];
              if (mark) selection.set({ ...mark, iteration: 0 });
            };
            return (
              <li key={index} class={`line ${chosen(index + 1) ? "selected" : ""}`} data-line={index + 1}>
                {first ? (
                  <button type="button" title={here.map((mark) => mark.operation).join(", ")} onClick={next}>
                    {words}
                  </button>
                ) : (
                  <code>{words}</code>
                )}
              </li>
            );
          })}
        </ol>
      </div>
    </div>
  );
}

/** Code and order of issue, side by side. */
export function CodeView({ code, loops }: { code: Code; loops: LoopModel[] }) {
  const marks = useMemo(() => {
    const found: Marks = new Map();
    for (const { loop, operation, line } of code.lines ?? []) {
      found.set(line, [...(found.get(line) ?? []), { loop, operation }]);
    }
    return found;
  }, [code]);
  return (
    <section id="code" class="part">
      <h3>Code</h3>
      <p class="note">
        {code.file}, next to the order in which an iteration issues.
        {marks.size > 0 && " Marked lines belong to an operation: select one to see the other."}
      </p>
      <div class="code-columns">
        <Order loops={loops} />
        <Text code={code} marks={marks} />
      </div>
    </section>
  );
}
