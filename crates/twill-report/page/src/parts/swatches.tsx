// The colours of the warp groups.
import type { LoopModel } from "../model/loop";
import { groupName, HUES } from "./bars";

/** A swatch for each warp group. */
export function GroupSwatches({ loop }: { loop: LoopModel }) {
  return (
    <>
      {loop.groups.map((group) => (
        <span key={group.id} class={`swatch group-${group.id % HUES}`}>
          {groupName(group.id)}
        </span>
      ))}
    </>
  );
}
