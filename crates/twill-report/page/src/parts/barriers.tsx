// The barriers at which an operation waits or arrives, in words.
import type { ChannelEntry } from "../data";
import type { Handshake, Moment } from "../model/barriers";
import { grouped, spelled } from "../words";
import { Sheet } from "./sheet";

/** `full[1]`. */
export function barrierName({ barrier, slot }: Handshake): string {
  return `${barrier}[${slot}]`;
}

/** Which groups a channel is between, and through which memory. */
export function channelInWords({ from, to, memory }: ChannelEntry): string {
  return `group ${from} → ${to}, ${spelled(memory)}`;
}

/** The operations at a barrier, and when. */
export function momentInWords({ operation, iteration, cycle }: Moment): string {
  // They run ahead of where they are shown.
  const latest = operation.streaming ? ", at the latest" : "";
  return `${operation.name} of iteration ${iteration}, cycle ${grouped(cycle)}${latest}`;
}

/** Arrivals and waits at barriers of channels, a row each. */
export function Barriers({ handshakes }: { handshakes: Handshake[] }) {
  if (handshakes.length === 0) return null;
  return (
    <Sheet
      of="barriers"
      caption="Barriers: full says that the value is there, empty that its slot is free again"
      heads={["channel", "barrier", { number: "of slots" }, { number: "phase" }, "arrives", "waits"]}
    >
      {handshakes.map((found, index) => (
        <tr
          key={index}
          data-buffer={found.channel.buffer}
          data-barrier={found.barrier}
          data-slot={found.slot}
          data-phase={found.phase}
        >
          <td>
            {found.channel.buffer}, {channelInWords(found.channel)}
          </td>
          <td>{barrierName(found)}</td>
          <td class="number">{found.channel.depth}</td>
          <td class="number">{found.phase}</td>
          <td>{momentInWords(found.arrives)}</td>
          <td>{momentInWords(found.waits)}</td>
        </tr>
      ))}
    </Sheet>
  );
}
