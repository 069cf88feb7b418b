// The engine in its worker. A search is ended by ending the worker: the next one has the compiled module already.
import type { Page } from "../data";
import type { Offered } from "./offered";
import type { Question } from "./state";

/** What a question is answered with. */
export interface Answer {
  page?: Page;
  error?: string;
  /** Seconds that the engine took. */
  seconds?: number;
  /** The machine file that says what was changed. */
  machine_file?: string | null;
  /** Bytes of the engine's memory. */
  memory?: number;
}

/** What the worker says. */
type Said = { offered: string } | { progress: string } | { answer: string; memory: number } | { failed: string };

async function unpacked(id: string): Promise<ArrayBuffer> {
  const packed = atob(document.getElementById(id)?.textContent ?? "");
  const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

/** Compiles the engine that is in the page. */
export async function load(): Promise<Engine> {
  const module = await WebAssembly.compile(await unpacked("engine"));
  const source = document.getElementById("worker")?.textContent ?? "";
  const script = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  return new Engine(module, script);
}

/** Answers one question at a time. */
export class Engine {
  private worker: Worker;
  private give: ((answer: Answer | null) => void) | null = null;
  private tell: (text: string) => void = () => {};
  private offering: ((offered: Offered) => void) | null = null;
  /** What it offers. */
  readonly offered: Promise<Offered>;

  constructor(
    private readonly module: WebAssembly.Module,
    private readonly script: string,
  ) {
    this.offered = new Promise((resolve) => (this.offering = resolve));
    this.worker = this.begin();
  }

  /** True while it searches. */
  get busy(): boolean {
    return this.give !== null;
  }

  /** Asks; null if it was stopped. `tell` hears how far it is. */
  ask(question: Question, tell: (text: string) => void): Promise<Answer | null> {
    this.stop();
    this.tell = tell;
    return new Promise((resolve) => {
      this.give = resolve;
      this.worker.postMessage({ question: JSON.stringify(question) });
    });
  }

  /** Ends a search. */
  stop(): void {
    if (!this.give) return;
    this.worker.terminate();
    this.worker = this.begin();
    this.end(null);
  }

  private end(answer: Answer | null): void {
    const give = this.give;
    this.give = null;
    this.tell = () => {};
    give?.(answer);
  }

  private begin(): Worker {
    const worker = new Worker(this.script, { name: "twill" });
    worker.onmessage = ({ data }: MessageEvent<Said>) => {
      if ("offered" in data) this.offering?.(JSON.parse(data.offered) as Offered);
      else if ("progress" in data) this.tell(data.progress);
      else if ("answer" in data) this.end({ ...(JSON.parse(data.answer) as Answer), memory: data.memory });
      else this.fail(data.failed);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      this.fail(event.message);
    };
    worker.postMessage({ module: this.module });
    return worker;
  }

  /** A defect: what is left of the worker is not trusted. */
  private fail(why: string): void {
    this.worker.terminate();
    this.worker = this.begin();
    this.end({ error: `the engine failed: ${why}. Please report it with the link of this page` });
  }
}
