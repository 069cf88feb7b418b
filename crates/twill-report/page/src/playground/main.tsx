// Starts the engine and draws the playground.
import { render } from "preact";
import { motion } from "../chart/morph";
import "../style/main.css";
import { load } from "./engine";
import { Playground } from "./playground";
import "./playground.css";
import { FIRST, stateOf } from "./state";

const root = document.getElementById("app") ?? document.body.appendChild(document.createElement("div"));

async function start(): Promise<void> {
  try {
    motion.milliseconds = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 300;
    const [engine, first] = await Promise.all([load(), stateOf(location.hash)]);
    const offered = await engine.offered;
    render(<Playground engine={engine} offered={offered} first={first ?? FIRST} />, root);
  } catch (error) {
    render(
      <p role="alert">
        The playground cannot start: {error instanceof Error ? error.message : String(error)}. It needs a browser with
        WebAssembly and workers.
      </p>,
      root,
    );
    throw error;
  }
}

void start();
