// Which bars light up for the selection.
import { useMemo } from "preact/hooks";
import type { Lighting } from "../chart/view";
import { chainOf, keyOf } from "../model/chain";
import type { LoopModel } from "../model/loop";
import { slack } from "../model/loop";
import { selection, useStore, wholeChain } from "../state";

/** Lights up the selected operation's chain among the first `iterations`. */
export function useLighting(loop: LoopModel, iterations: number): Lighting {
  const at = useStore(selection);
  const whole = useStore(wholeChain);
  return useMemo(() => {
    const operation = at?.loop === loop.index ? loop.byName.get(at.operation) : undefined;
    if (!at || !operation) return { chosen: null, lit: null, links: [] };
    const chain = chainOf(loop, { operation, iteration: at.iteration }, iterations, whole);
    const links = chain.links.map((link) => ({
      from: keyOf(link.from.operation, link.from.iteration),
      to: keyOf(link.to.operation, link.to.iteration),
      direct: link.direct,
      tight: slack(loop, link.dependence) === 0,
    }));
    return { chosen: keyOf(operation, at.iteration), lit: chain.keys, links };
  }, [loop, iterations, at, whole]);
}
