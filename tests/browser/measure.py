"""The speed of large reports in a browser: first paint, and frames while zooming. Not a test.

    python tests/browser/measure.py [REPORT ...]

Without reports, it makes a loop graph of 200 operations and dataflow schedules of 5000, once with names of 40 letters.
First paint is the browser's own `first-contentful-paint` after navigation; a frame is the time between two animation
frames, of 60 wheel steps over the chart; work is the part that the page's script, layout and painting took.
"""

import statistics
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from reports import Reports, chromium, loop_graph

STEPS = 60
REPEATS = 5

# Zooms in, out and in again, a wheel step a frame, and returns the milliseconds between frames.
ZOOM = """([selector, steps]) => new Promise(done => {
  const chart = document.querySelector(selector);
  chart.scrollIntoView({ block: "center" });
  const box = chart.getBoundingClientRect();
  const times = [], work = [];
  let taken = 0, last = performance.now();
  const step = now => {
    times.push(now - last);
    last = now;
    if (taken++ >= steps) return done({ times: times.slice(2), work: work.slice(2) });
    chart.dispatchEvent(new WheelEvent("wheel", {
      deltaY: taken % 30 < 15 ? -60 : 60, ctrlKey: true, bubbles: true, cancelable: true,
      clientX: box.left + box.width / 2, clientY: box.top + box.height / 2,
    }));
    requestAnimationFrame(step);
    const channel = new MessageChannel();
    // After the frame's animation callbacks, layout and paint.
    requestAnimationFrame(() => {
      channel.port1.onmessage = () => work.push(performance.now() - last);
      channel.port2.postMessage(0);
    });
  };
  requestAnimationFrame(step);
})"""

PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def first_paint(browser: Browser, report: Path) -> float:
    """Milliseconds from navigation to the first paint, in a fresh page."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(report.as_uri())
    milliseconds = page.evaluate(PAINT)
    while milliseconds is None:
        page.wait_for_timeout(20)
        milliseconds = page.evaluate(PAINT)
    page.close()
    return milliseconds


def zoom(page: Page) -> dict[str, list[float]]:
    """Milliseconds of the frames while zooming."""
    canvas = page.locator(".placement canvas").count() > 0
    return page.evaluate(ZOOM, [".placement canvas" if canvas else "[data-view=timeline]", STEPS])


def row(browser: Browser, report: Path) -> str:
    """A line of the table."""
    first_paint(browser, report)  # The browser's own caches.
    paints = [first_paint(browser, report) for _ in range(REPEATS)]
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(report.as_uri())
    page.wait_for_timeout(1500)
    frames = zoom(page)
    elements = page.evaluate("document.querySelectorAll('*').length")
    page.close()
    times, work = sorted(frames["times"]), frames["work"]
    most = times[int(0.95 * (len(times) - 1))]
    kilobytes = report.stat().st_size / 1000
    return (
        f"| {report.stem} | {kilobytes:.0f} | {elements} | {statistics.median(paints):.0f} ({max(paints):.0f}) "
        f"| {statistics.median(times):.1f} | {most:.1f} | {statistics.median(work):.1f} |"
    )


def main() -> None:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        reports = Reports(Path(folder))
        given = [Path(name).resolve() for name in sys.argv[1:]]
        if not given:
            loop = reports.graph("loop of 200", loop_graph(200), "--no-explain", "--time-limit", "20")
            given = [loop, reports.dataflow(5000), reports.dataflow(5000, letters=40)]
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        print(
            "| report | kB | elements | first paint (worst), ms | frame, ms | 95 % of frames, ms | work a frame, ms |"
        )
        print("|---|---|---|---|---|---|---|")
        for report in given:
            print(row(browser, report))
        browser.close()


if __name__ == "__main__":
    main()
