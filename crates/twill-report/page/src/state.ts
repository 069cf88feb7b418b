// The selection, and the state of its chain's display. Views subscribe to it.
import { useEffect, useState } from "preact/hooks";

/** A selected operation; its iteration matters on the timeline alone. */
export interface Selection {
  loop: number;
  operation: string;
  iteration: number;
}

type Listener = () => void;

class Store<T> {
  private listeners = new Set<Listener>();
  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set(next: T): void {
    if (next === this.current) return;
    this.current = next;
    for (const listener of [...this.listeners]) listener();
  }

  subscribe(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

export const selection = new Store<Selection | null>(null);
export const wholeChain = new Store<boolean>(false);

/** The value of a store in a component, which is drawn again when it changes. */
export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState(store.value);
  useEffect(() => {
    setValue(store.value);
    return store.subscribe(() => setValue(store.value));
  }, [store]);
  return value;
}

/** Selects an operation, or nothing if it is selected already. */
export function toggle(next: Selection): void {
  const now = selection.value;
  const same = now?.loop === next.loop && now.operation === next.operation && now.iteration === next.iteration;
  selection.set(same ? null : next);
}
