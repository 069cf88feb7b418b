// Draws the report from the data in the page.
import { render } from "preact";
import { App } from "./app";
import { readPage } from "./data";
import "./style/main.css";

const root = document.getElementById("app") ?? document.body.appendChild(document.createElement("div"));

async function draw(): Promise<void> {
  try {
    render(<App page={await readPage()} />, root);
  } catch (error) {
    render(
      <p role="alert">This report cannot be shown: {error instanceof Error ? error.message : String(error)}.</p>,
      root,
    );
    throw error;
  }
}

void draw();
