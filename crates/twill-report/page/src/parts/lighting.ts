// Which bars light up for the selection, and which barriers.
import { useMemo } from "preact/hooks";
import { DARK, type HandshakeSpec, type Lighting } from "../chart/spec";
import { handshakesOf, type Handshake, type Moment } from "../model/barriers";
import { chainOf, keyOf } from "../model/chain";
import type { LoopModel } from "../model/loop";
import { slack } from "../model/loop";
import { selection, useStore, wholeChain } from "../state";
import { barrierName, channelInWords, momentInWords } from "./barriers";

function handshakeSpec(found: Handshake): HandshakeSpec {
  const { channel, barrier, slot, phase, iteration, arrives, waits } = found;
  const mark = ({ operation, iteration: at, cycle }: Moment) => ({ instance: keyOf(operation, at), cycle });
  return {
    kind: barrier,
    arrives: mark(arrives),
    waits: mark(waits),
    attributes: {
      ...{ barrier, buffer: channel.buffer, from: channel.from, to: channel.to, slot, phase, iteration },
      ...{ arrives: arrives.cycle, waits: waits.cycle },
    },
    tip: () => ({
      title: `${barrierName(found)} of ${channel.buffer}`,
      rows: [
        ["says", barrier === "full" ? "the value is there" : "the slot is free again"],
        ["slot", `${slot} of ${channel.depth}, phase ${phase}`],
        ["value of", `iteration ${iteration}`],
        ["channel", channelInWords(channel)],
        ["arrives", momentInWords(arrives)],
        ["waits", momentInWords(waits)],
      ],
    }),
  };
}

/** The same for the two operations of a barrier. */
function nameOf(loop: LoopModel, { channel, barrier, iteration, waits }: Handshake): string {
  return `${loop.channels.indexOf(channel)} ${barrier} ${iteration} ${keyOf(waits.operation, waits.iteration)}`;
}

/** Lights up the selected operation's chain among the first `iterations`, and its barriers. */
export function useLighting(loop: LoopModel, iterations: number): Lighting {
  const at = useStore(selection);
  const whole = useStore(wholeChain);
  return useMemo(() => {
    const operation = at?.loop === loop.index ? loop.byName.get(at.operation) : undefined;
    if (!at || !operation) return DARK;
    const instance = { operation, iteration: at.iteration };
    const chain = chainOf(loop, instance, iterations, whole);
    const links = chain.links.map((link) => ({
      from: keyOf(link.from.operation, link.from.iteration),
      to: keyOf(link.to.operation, link.to.iteration),
      direct: link.direct,
      tight: slack(loop, link.dependence) === 0,
    }));
    const asked = whole ? [...chain.instances.values()] : [instance];
    const met = new Map(asked.flatMap((one) => handshakesOf(loop, one)).map((found) => [nameOf(loop, found), found]));
    const lit = new Set(chain.instances.keys());
    return { chosen: keyOf(operation, at.iteration), lit, links, handshakes: [...met.values()].map(handshakeSpec) };
  }, [loop, iterations, at, whole]);
}
