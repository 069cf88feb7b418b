// The input, the machine, and the sliders.
import type { Example, Machine } from "./offered";
import { FIRST, isGraph, onMachine, type State } from "./state";
import { grouped } from "../words";

interface Properties {
  state: State;
  examples: Example[];
  machines: Machine[];
  /** The unit that bounds the interval. */
  bounding: string | null;
  change: (state: State) => void;
}

interface SliderProperties {
  id: string;
  name: string;
  min: number;
  max: number;
  step: number;
  /** Where it stands, and what that is in words. */
  value: number;
  words: string;
  changed: boolean;
  bounds?: boolean;
  input: (value: number) => void;
  undo: () => void;
}

function Slider({ id, name, words, changed, bounds, input, undo, ...range }: SliderProperties) {
  return (
    <div class={`slider ${changed ? "changed" : ""} ${bounds ? "bounds" : ""}`}>
      <label for={id}>
        {name}
        {bounds && <small> bounds I</small>}
      </label>
      <output for={id}>{words}</output>
      <input
        id={id}
        type="range"
        {...range}
        aria-valuetext={words}
        onInput={(event) => input(Number(event.currentTarget.value))}
      />
      <button type="button" class="undo" disabled={!changed} aria-label={`Undo the change of ${name}`} onClick={undo}>
        ×
      </button>
    </div>
  );
}

function factorInWords(factor: number): string {
  return factor === 1 ? "as it is" : `× ${Number(factor.toPrecision(3))}`;
}

/** The state without some of its fields. */
function without(
  state: State,
  field: "sharedBytes" | "registers" | "groups" | "latencies" | "subTiles" | "step",
): State {
  const { [field]: _, ...rest } = state;
  return rest;
}

const KIB = 1024;
/** 0 is "as the kernel has it", then powers of two. */
const CUTS = [0, 1, 2, 4, 8];
const STEPS = [0, 16, 32, 48, 64, 80, 96, 112, 128, 160, 176, 192, 224, 256];

function Cut(of: {
  state: State;
  field: "subTiles" | "step";
  name: string;
  values: number[];
  unset: string;
  change: (state: State) => void;
}) {
  const { state, field, values } = of;
  const at = Math.max(0, values.indexOf(state[field] ?? 0));
  return (
    <Slider
      id={field}
      name={of.name}
      min={0}
      max={values.length - 1}
      step={1}
      value={at}
      words={at === 0 ? of.unset : grouped(values[at] ?? 0)}
      changed={at !== 0}
      input={(next) => {
        const value = values[next] ?? 0;
        of.change(value === 0 ? without(state, field) : { ...state, [field]: value });
      }}
      undo={() => of.change(without(state, field))}
    />
  );
}

/** What can be changed of the machine and the kernel. */
function Sliders({ state, machine, bounding, change, kernel }: Properties & { machine: Machine; kernel: boolean }) {
  const shared = state.sharedBytes ?? machine.shared_bytes;
  const registers = state.registers ?? machine.registers_per_thread;
  const groups = state.groups ?? machine.compute_groups;
  const rate = (unit: string, power: number) => {
    const { [unit]: _, ...rates } = state.rates;
    change({ ...state, rates: power === 0 ? rates : { ...rates, [unit]: 2 ** power } });
  };
  return (
    <fieldset class="sliders">
      <legend>What if</legend>
      <Slider
        {...{ id: "sharedBytes", name: "shared memory", min: 32, max: 512, step: 1 }}
        value={shared / KIB}
        words={`${grouped(Math.round(shared / KIB))} KiB`}
        changed={state.sharedBytes !== undefined}
        bounds={bounding === "smem"}
        input={(value) => change({ ...state, sharedBytes: value * KIB })}
        undo={() => change(without(state, "sharedBytes"))}
      />
      <Slider
        {...{ id: "registers", name: "registers a thread", min: 32, max: 255, step: 1 }}
        value={registers}
        words={`at most ${registers}`}
        changed={state.registers !== undefined}
        input={(value) => change({ ...state, registers: value })}
        undo={() => change(without(state, "registers"))}
      />
      <Slider
        {...{ id: "groups", name: "compute groups", min: 1, max: 8, step: 1 }}
        value={groups}
        words={`at most ${groups}`}
        changed={state.groups !== undefined}
        input={(value) => change({ ...state, groups: value })}
        undo={() => change(without(state, "groups"))}
      />
      {kernel &&
        machine.units.map((unit) => (
          <Slider
            key={unit}
            {...{ id: `rate-${unit}`, name: `rate of ${unit}`, min: -2, max: 3, step: 0.25 }}
            value={Math.log2(state.rates[unit] ?? 1)}
            words={factorInWords(state.rates[unit] ?? 1)}
            changed={state.rates[unit] !== undefined}
            bounds={bounding === unit}
            input={(power) => rate(unit, power)}
            undo={() => rate(unit, 0)}
          />
        ))}
      {kernel && (
        <Slider
          {...{ id: "latencies", name: "latencies", min: 0, max: 4, step: 0.25 }}
          value={state.latencies ?? 1}
          words={factorInWords(state.latencies ?? 1)}
          changed={state.latencies !== undefined}
          input={(value) => change(value === 1 ? without(state, "latencies") : { ...state, latencies: value })}
          undo={() => change(without(state, "latencies"))}
        />
      )}
      {kernel && (
        <>
          <Cut {...{ state, change }} field="subTiles" name="sub-tiles along M" values={CUTS} unset="by instruction" />
          <Cut {...{ state, change }} field="step" name="tile along the loop" values={STEPS} unset="as in the source" />
        </>
      )}
    </fieldset>
  );
}

/** The left side of the playground. */
export function Controls(properties: Properties) {
  const { state, examples, machines, change } = properties;
  const machine = machines.find((one) => one.name === state.machine);
  const example = examples.find((one) => one.name === state.example);
  const text = example?.text ?? state.text;
  const own = (next: string) => {
    // A loop graph names its machine, and its costs are for that.
    const machine = isGraph(next) === isGraph(text) ? state.machine : isGraph(next) ? "" : FIRST.machine;
    const input = { ...state, example: null, text: next, machine };
    change(machine === state.machine ? input : { ...input, rates: {} });
  };
  const file = async (files: FileList | null) => {
    const [first] = files ?? [];
    if (first) own(await first.text());
  };
  return (
    <>
      <label class="choice">
        Input
        <select
          id="example"
          value={state.example ?? ""}
          onChange={({ currentTarget: { value } }) => change({ ...state, example: value === "" ? null : value })}
        >
          <option value="">your own</option>
          {examples.map((one) => (
            <option key={one.name} value={one.name}>
              {one.title}
            </option>
          ))}
        </select>
      </label>
      <details class="input" open={state.example === null}>
        <summary>TTIR or a loop graph</summary>
        <textarea
          id="text"
          spellcheck={false}
          aria-label="TTIR or a loop graph"
          placeholder="Paste TTIR as Triton prints it (kernel.asm['ttir']), or a loop graph in JSON"
          value={text}
          onInput={(event) => own(event.currentTarget.value)}
          onDragOver={(event) => event.preventDefault()}
          onDrop={(event) => {
            event.preventDefault();
            void file(event.dataTransfer?.files ?? null);
          }}
        />
        <input
          type="file"
          id="file"
          aria-label="A file with TTIR or a loop graph"
          accept=".ttir,.mlir,.json,.txt"
          onChange={(event) => void file(event.currentTarget.files)}
        />
      </details>
      <label class="choice">
        Machine
        <select
          id="machine"
          value={state.machine}
          onChange={({ currentTarget: { value } }) => {
            change(onMachine(state, value));
          }}
        >
          {isGraph(text) && <option value="">the graph's own</option>}
          {machines.map((one) => (
            <option key={one.name} value={one.name} title={one.description}>
              {one.name}
            </option>
          ))}
        </select>
      </label>
      {state.machine === "" && <p class="answered">Choose a machine to change it.</p>}
      {machine && <Sliders {...properties} machine={machine} kernel={!isGraph(text)} />}
    </>
  );
}
