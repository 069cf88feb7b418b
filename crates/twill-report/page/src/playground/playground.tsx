// The playground: an input and sliders on the left, the report of their schedule on the right.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { App } from "../app";
import type { Page } from "../data";
import { selection } from "../state";
import { Controls } from "./controls";
import type { Answer, Engine } from "./engine";
import type { Offered } from "./offered";
import { linkOf, onMachine, questionOf, stateOf, type State } from "./state";

/** Milliseconds that an older question may have taken when it is given up for a newer one. */
const PATIENCE = 150;
/** Milliseconds without a change after which it is asked why the schedule is no faster. */
const REST = 250;

interface Shown {
  page: Page | null;
  error: string | null;
  machineFile: string | null;
  /** Milliseconds from the change to the picture. */
  took: number | null;
  /** Of these, milliseconds of the engine. */
  engine: number | null;
  memory: number;
  explained: boolean;
  /** Answers so far, explanations not counted. */
  answers: number;
}

const NOTHING: Shown = {
  page: null,
  error: null,
  machineFile: null,
  took: null,
  engine: null,
  memory: 0,
  explained: false,
  answers: 0,
};

/** The resource that bounds the interval of the page's first loop: a unit, or `smem`. */
function boundingUnit(page: Page | null): string | null {
  const witness = page?.loops[0]?.schedule.lower_bound.witness;
  const kind = page?.loops[0]?.schedule.lower_bound.kind;
  return kind === "shared_bandwidth" ? "smem" : (witness?.unit ?? null);
}

/** Asks, and shows what is answered. */
function useAnswers(engine: Engine, offered: Offered, state: State) {
  const [shown, setShown] = useState<Shown>(NOTHING);
  const [progress, setProgress] = useState<string | null>(null);
  const asked = useRef({ number: 0, at: 0 });

  const stop = useCallback(() => {
    asked.current.number += 1;
    engine.stop();
    setProgress(null);
  }, [engine]);

  useEffect(() => {
    const number = (asked.current.number += 1);
    const changed = performance.now();
    const isLatest = () => asked.current.number === number;
    const put = (answer: Answer, explained: boolean) => {
      const { page, error } = answer;
      const took = performance.now() - changed;
      setShown((before) => ({
        page: page ?? before.page,
        error: error ?? null,
        machineFile: answer.machine_file ?? null,
        took: explained ? before.took : took,
        engine: explained || answer.seconds === undefined ? before.engine : 1000 * answer.seconds,
        memory: answer.memory ?? before.memory,
        explained: explained || error !== undefined,
        answers: before.answers + (explained ? 0 : 1),
      }));
    };
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async (explain: boolean) => {
      asked.current.at = performance.now();
      setProgress("");
      const question = questionOf(state, offered.examples, explain);
      const answer = await engine.ask(question, (text) => isLatest() && setProgress(text));
      if (!isLatest() || !answer) return;
      put(answer, explain);
      setProgress(null);
      if (!explain && !answer.error) timer = setTimeout(() => void ask(true), REST);
    };
    const begin = () => {
      // Most answers are there sooner than a new worker would be.
      const patient = engine.busy && performance.now() - asked.current.at < PATIENCE;
      if (patient) timer = setTimeout(begin, 5);
      else void ask(false);
    };
    begin();
    return () => clearTimeout(timer);
  }, [engine, offered, state]);
  return { shown, progress, stop };
}

/** The whole playground. */
export function Playground({ engine, offered, first }: { engine: Engine; offered: Offered; first: State }) {
  const [state, setState] = useState(first);
  const { shown, progress, stop } = useAnswers(engine, offered, state);
  const change = useCallback((next: State) => {
    selection.set(null);
    setState(next);
  }, []);
  const [copied, setCopied] = useState(false);

  useEffect(() => {
    let current = true;
    setCopied(false);
    void linkOf(state).then((link) => current && history.replaceState(null, "", link));
    return () => void (current = false);
  }, [state]);
  useEffect(() => {
    const follow = () => void stateOf(location.hash).then((next) => next && setState(next));
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);

  const copy = async () => {
    history.replaceState(null, "", await linkOf(state));
    await navigator.clipboard.writeText(location.href).catch(() => {});
    setCopied(true);
  };
  const { page, error, took } = shown;
  const settled = progress === null && shown.explained;
  return (
    <div class="playground">
      <aside
        aria-label="Input and machine"
        data-state={progress !== null ? "busy" : settled ? "settled" : "shown"}
        data-milliseconds={took?.toFixed(1)}
        data-engine={shown.engine?.toFixed(1)}
        data-memory={shown.memory}
        data-answers={shown.answers}
      >
        <h2>Twill's playground</h2>
        <p class="answered" role="status">
          {progress !== null ? (
            <>
              <button type="button" class="stop" onClick={stop}>
                Stop
              </button>{" "}
              {shown.page && !shown.explained && took !== null
                ? `answered in ${took.toFixed(0)} ms; why no faster: `
                : ""}
              {progress || "searching"}
            </>
          ) : took !== null && !error ? (
            `answered in ${took.toFixed(0)} ms, on this machine and in this page alone`
          ) : (
            ""
          )}
        </p>
        {error && (
          <p class="error" role="alert">
            {error}
          </p>
        )}
        <Controls
          state={state}
          examples={offered.examples}
          machines={offered.machines}
          bounding={error ? null : boundingUnit(page)}
          change={change}
        />
        <p class="actions">
          <button type="button" id="link" onClick={() => void copy()}>
            {copied ? "Link copied" : "Copy a link to this"}
          </button>
          <button type="button" id="undo" onClick={() => change(onMachine(state, state.machine))}>
            Undo all changes
          </button>
        </p>
        {shown.machineFile && (
          <details class="machine-file">
            <summary>The machine file of these changes</summary>
            <pre>{shown.machineFile}</pre>
          </details>
        )}
      </aside>
      <div class={`answer ${error ? "old" : ""}`} aria-busy={progress !== null}>
        {page ? <App page={page} /> : <p class="waiting">{error ? "" : "The engine is starting."}</p>}
      </div>
    </div>
  );
}
