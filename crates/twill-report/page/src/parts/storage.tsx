// Registers, memories with the lives of their buffers, and channels.
import { useMemo } from "preact/hooks";
import { DARK, type Bar, type ChartSpec } from "../chart/spec";
import { ChartView } from "../chart/view";
import type { Loop, MemoryUse } from "../data";
import { pack } from "../model/fold";
import { phaseOf, slotOf } from "../model/barriers";
import type { LoopModel } from "../model/loop";
import { bytes, count, grouped, percent, spelled } from "../words";
import { groupName, groupNote, HUES } from "./bars";
import { Curve } from "./curve";
import { Sheet } from "./sheet";

const MOST_LIVES = 8;

/** Live registers of each warp group over the steady state. */
export function Registers({ loop, data }: { loop: LoopModel; data: Loop }) {
  const curves = data.registers ?? [];
  if (curves.length === 0) return null;
  return (
    <section id={`registers-${loop.index}`} class="part">
      <h3>Live registers</h3>
      <p class="note">
        Words of tiles that a thread keeps, and the reserve for everything else, over the steady state.
      </p>
      <div class="grid">
        {curves.map((curve) => {
          const group = loop.groups.find((entry) => entry.id === curve.group);
          return (
            <Curve
              key={curve.group}
              title={`${groupName(curve.group)}${group ? ` (${groupNote(group.role, group.warps)})` : ""}`}
              steps={curve.live.map(([cycle, words]) => [cycle, words + curve.reserve])}
              end={loop.interval}
              limits={[
                { name: "granted", value: curve.granted },
                { name: "limit", value: curve.limit },
              ]}
              unit={`registers a thread${curve.reserve > 0 ? `, ${curve.reserve} of them reserve` : ""}`}
              axis="cycle"
              tone={`group-${curve.group % HUES}`}
            />
          );
        })}
      </div>
    </section>
  );
}

function livesSpec(loop: LoopModel, memory: MemoryUse): ChartSpec {
  const last = Math.max(loop.interval, ...memory.buffers.map((buffer) => buffer.end));
  const first = Math.min(0, ...memory.buffers.map((buffer) => buffer.start));
  const rows = memory.buffers.map((buffer, index) => {
    const copies = Math.min(MOST_LIVES, Math.max(1, buffer.slots, Math.ceil((last - first) / loop.interval)));
    const bars = Array.from({ length: copies }, (_, iteration): Bar => {
      const slot = slotOf(iteration, buffer.slots);
      const start = buffer.start + iteration * loop.interval;
      const end = buffer.end + iteration * loop.interval;
      const amount = memory.unit === "bytes" ? bytes(buffer.amount) : count(buffer.amount, "column");
      return {
        start,
        end,
        lane: slot,
        label: `${iteration}:${buffer.operation}`,
        tone: `hue-${iteration % HUES}`,
        style: "",
        instance: null,
        anchor: false,
        selection: loop.byName.has(buffer.operation)
          ? { loop: loop.index, operation: buffer.operation, iteration }
          : null,
        attributes: { buffer: buffer.operation, iteration, start, end, slot },
        aria: `${buffer.operation}, iteration ${iteration}, slot ${slot}, ${amount}, cycles ${start} to ${end}`,
        tip: () => ({
          title: buffer.operation,
          rows: [
            ["iteration", `${iteration}`],
            ["slot", `${slot} of ${buffer.slots}, phase ${phaseOf(iteration, buffer.slots)}`],
            ["live", `${grouped(start)} to ${grouped(end)} (${grouped(end - start)} cycles)`],
            ["takes", amount],
          ],
        }),
      };
    }).filter((bar) => bar.start < last);
    const lanes = Math.max(buffer.slots, 1);
    const packed = lanes > MOST_LIVES ? pack(bars) : lanes;
    return {
      name: buffer.operation,
      note: buffer.ring ? "ring" : "value",
      lanes: packed,
      laneHeight: 16,
      first: index === 0,
      bars,
    };
  });
  const marks: number[] = [];
  for (let mark = 0; mark <= last && marks.length < 32; mark += loop.interval) marks.push(mark);
  return {
    view: "lives",
    label: `Lives of the buffers in ${spelled(memory.memory)}, a lane for each slot.`,
    rows,
    domain: [first, last],
    bands: [],
    marks,
  };
}

function Memory({ loop, memory }: { loop: LoopModel; memory: MemoryUse }) {
  const spec = useMemo(() => livesSpec(loop, memory), [loop, memory]);
  const name = spelled(memory.memory);
  const peak = Math.max(memory.reserved, ...memory.live.map(([, amount]) => amount));
  return (
    <div class="memory">
      <Curve
        title={name}
        steps={memory.live}
        end={loop.interval}
        limits={[{ name: "capacity", value: memory.capacity }]}
        unit={`${memory.unit} (${percent(peak, memory.capacity)}), ${grouped(memory.reserved)} reserved outside the loop`}
        axis="cycle"
        tone="group-0"
      />
      {memory.buffers.length > 0 && (
        <ChartView spec={spec} lighting={DARK}>
          <span class="note">Lives of its buffers: a lane is a slot; lines are multiples of I.</span>
        </ChartView>
      )}
    </div>
  );
}

/** Use of shared and tensor memory, and the lives of buffers. */
export function Memories({ loop, data }: { loop: LoopModel; data: Loop }) {
  const memories = (data.memories ?? []).filter((memory) => memory.capacity > 0 || memory.buffers.length > 0);
  if (memories.length === 0) return null;
  return (
    <section id={`memories-${loop.index}`} class="part">
      <h3>Memories</h3>
      {memories.map((memory) => (
        <Memory key={memory.memory} loop={loop} memory={memory} />
      ))}
    </section>
  );
}

function phasesInWords(depth: number): string {
  return depth === 1 ? "k mod 2" : `⌊k / ${depth}⌋ mod 2`;
}

/** Values that pass from group to group, and rings of loads. */
export function Channels({ loop }: { loop: LoopModel }) {
  if (loop.channels.length === 0 && loop.rings.length === 0) return null;
  return (
    <section id={`channels-${loop.index}`} class="part">
      <h3>Channels and rings</h3>
      <Sheet
        of="channels"
        caption="Iteration k uses slot k mod depth; its barrier completes with the phase given"
        heads={["value", "groups", "through", { number: "of one copy" }, { number: "depth" }, "slot", "phase"]}
      >
        {loop.channels.map((channel, index) => (
          <tr key={index} data-channel={channel.buffer} data-from={channel.from} data-to={channel.to}>
            <td>{channel.buffer}</td>
            <td>
              {channel.from} → {channel.to}
            </td>
            <td>{channel.memory === "handoff" ? "handoff in shared memory" : spelled(channel.memory)}</td>
            <td class="number">{channel.columns ? count(channel.columns, "column") : bytes(channel.bytes ?? 0)}</td>
            <td class="number">{channel.depth}</td>
            <td>{channel.depth === 1 ? "0" : `k mod ${channel.depth}`}</td>
            <td>{phasesInWords(channel.depth)}</td>
          </tr>
        ))}
      </Sheet>
      {loop.rings.length > 0 && (
        <Sheet
          of="rings"
          caption="Rings of streaming loads"
          heads={["load", { number: "slot" }, { number: "slots" }, { number: "in all" }]}
        >
          {loop.rings.map((ring) => (
            <tr key={ring.buffer}>
              <td>{ring.buffer}</td>
              <td class="number">{bytes(ring.bytes)}</td>
              <td class="number">{ring.depth}</td>
              <td class="number">{bytes(ring.bytes * ring.depth)}</td>
            </tr>
          ))}
        </Sheet>
      )}
    </section>
  );
}
