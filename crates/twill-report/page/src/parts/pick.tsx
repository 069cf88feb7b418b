// The name of an operation, which selects it.
import type { LoopModel, Operation } from "../model/loop";
import { selection } from "../state";

interface Properties {
  loop: LoopModel;
  operation: Operation;
  iteration?: number;
  /** True if it is selected, where that is shown. */
  pressed?: boolean;
}

/** A button that selects an operation in an iteration. */
export function Pick({ loop, operation, iteration = 0, pressed }: Properties) {
  const pick = () => selection.set({ loop: loop.index, operation: operation.name, iteration });
  return (
    <button type="button" class="pick" aria-pressed={pressed} onClick={pick}>
      {operation.name}
    </button>
  );
}
