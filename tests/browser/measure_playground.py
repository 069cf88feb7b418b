"""The speed of the playground in a browser: the first answer, and the answer to each slider. Not a test.

    python tests/browser/measure_playground.py [PLAYGROUND]

Every slider is moved by one to five of its steps and back; a time is that from the slider's event to the second animation
frame after the answer is in the page, by when the picture has begun to change.
"""

import statistics
import sys
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from conftest import DESKTOP, PHONE
from reports import ROOT, chromium

MOVES = 5

SLIDERS = "sliders => sliders.map(one => [one.id, +one.min, +one.max, +one.step || 1, +one.value])"

MOVE = """([id, value]) => new Promise(done => {
  const aside = document.querySelector("aside"), slider = document.getElementById(id);
  const before = Number(aside.dataset.answers), begun = performance.now();
  const told = new MutationObserver(() => {
    if (Number(aside.dataset.answers) === before) return;
    told.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begun)));
  });
  told.observe(aside, { attributes: true });
  slider.value = value;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
})"""


def row(browser: Browser, name: str, viewport: dict[str, int], playground: Path) -> str:
    """A line of the table."""
    page = browser.new_page(viewport=viewport)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    begun = time.perf_counter()
    page.goto(playground.as_uri())
    page.wait_for_selector("aside[data-answers]:not([data-answers='0'])")
    first = time.perf_counter() - begun
    times: dict[str, list[float]] = {}
    for slider, least, most, step, now in page.eval_on_selector_all("aside input[type=range]", SLIDERS):
        ways = [max(least, min(most, now + (move + 1) * step)) for move in range(MOVES)]
        times[slider] = [page.evaluate(MOVE, [slider, value]) for way in ways for value in (way, now) if way != now]
    heap = page.evaluate("performance.memory?.usedJSHeapSize / 1e6")
    page.close()
    elsewhere = [url for url in requests if not url.startswith(("file:", "blob:", "data:"))]
    every = sorted(value for each in times.values() for value in each)
    slowest = max((statistics.median(each), slider) for slider, each in times.items() if each)
    return (
        f"| {name} | {first:.2f} | {statistics.median(every):.0f} | {every[int(0.9 * (len(every) - 1))]:.0f} | {every[-1]:.0f} "
        f"| {slowest[1]} {slowest[0]:.0f} | {heap:.0f} | {len(elsewhere)} |"
    )


def main() -> None:
    """Prints the table."""
    playground = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/playground.html").resolve()
    print("| view | first answer, s | median, ms | 90 %, ms | most, ms | slowest slider, ms | heap of JavaScript, MB | requests |")
    print("|---|--:|--:|--:|--:|---|--:|--:|")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for name, viewport in (("desktop", DESKTOP), ("phone", PHONE)):
            print(row(browser, name, viewport, playground), flush=True)
        browser.close()


if __name__ == "__main__":
    main()
