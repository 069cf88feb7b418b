"""Text stays within its bar, at every zoom, on a desk and on a phone; pictures as well."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from conftest import DESKTOP, PHONE
from reports import Reports, loop_graph, settle

# Names that go over the ends of their bars, those of bands and boxes, and numbers that leave the chart: what and how far.
OVERFLOWING = """() => {
  const found = [];
  const box = element => element.getBoundingClientRect();
  const within = (text, boxes) => {
    const own = box(text);
    if (!own.width || boxes.some(b => b.left - 0.5 <= own.left && own.right <= b.right + 0.5)) return;
    found.push([text.textContent, own.left, own.right]);
  };
  for (const chart of document.querySelectorAll("svg.chart")) {
    const bars = [...chart.querySelectorAll(".bar")].filter(b => b.style.display !== "none");
    const boxes = bars.map(b => box(b.querySelector("rect")));
    for (const text of chart.querySelectorAll(".bar-name")) {
      const middle = (box(text).top + box(text).bottom) / 2;
      within(text, boxes.filter(b => b.top <= middle && middle <= b.bottom));
    }
    const bands = [...chart.querySelectorAll(".band")].map(box);
    for (const text of chart.querySelectorAll(".band-name")) within(text, bands);
    for (const text of chart.querySelectorAll(".axis text, .names text")) within(text, [box(chart)]);
  }
  for (const node of document.querySelectorAll(".node, g[data-operation]:not(.bar)")) {
    for (const text of node.querySelectorAll("text")) within(text, [box(node.querySelector("rect"))]);
  }
  return found;
}"""

NAMED = "document.querySelectorAll('.bar-name:not(:empty)').length"

# Letters of very different widths: what the mean allows is too long for one end.
UNEVEN = ["WWWWWWWWmmmmmmmmiiiiiiiiiiiiiiiiiiiiiiii", "iiiiiiiiiiiiiiiiiiiiiiiiWWWWWWWWmmmmmmmm", "\u6f22\u5b57 \u0434\u043b\u0438\u043d\u043d\u043e\u0435 \u0438\u043c\u044f, lli"]


def uneven() -> dict:
    """A loop with such names."""
    graph = loop_graph(20)
    names = {entry["name"]: f"{UNEVEN[k % 3]}{k}" for k, entry in enumerate(graph["operations"])}
    for entry in graph["operations"]:
        entry["name"] = names[entry["name"]]
    for entry in graph["dependences"]:
        entry |= {end: names[entry[end]] for end in ("from", "to")}
    return graph


@pytest.fixture(params=["forward", "compiled", "attention_backward", "uneven"])
def report(request: pytest.FixtureRequest, reports: Reports) -> Path:
    name = request.param
    if name == "uneven":
        return reports.graph(name, uneven(), "--no-explain", "--time-limit", "20")
    return request.getfixturevalue(name) if name in ("forward", "compiled") else reports.kernel(name)


def zoom_in(page: Page) -> None:
    """Zooms all charts in, and waits until they rest."""
    page.evaluate("document.querySelectorAll('[aria-label=\"Zoom in\"]').forEach(button => button.click())")
    settle(page)


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_names_stay_in_their_bars(report, show, viewport):
    page = show(report, viewport)
    page.wait_for_selector(".node")
    page.evaluate("document.querySelectorAll('.part').forEach(part => part.style.contentVisibility = 'visible')")
    settle(page)
    named = 0
    for _ in range(9):
        assert page.evaluate(OVERFLOWING) == []
        named += page.evaluate(NAMED)
        zoom_in(page)
    assert named > 50, "there are names to look at"


def test_names_stay_in_their_bars_while_the_window_moves(forward, show):
    page = show(forward)
    chart = page.locator("[data-view=timeline]").first
    box = chart.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    page.keyboard.down("Control")
    for step in range(12):
        page.mouse.wheel(0, -60 if step < 8 else 45)
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert page.evaluate(OVERFLOWING) == [], step
    page.keyboard.up("Control")


@pytest.mark.parametrize("style", ["svg", "graph-svg"])
@pytest.mark.parametrize("kernel", ["attention_forward", "attention_backward", "gemm_tma"])
def test_pictures_keep_names_in_their_bars(reports: Reports, browser, kernel, style):
    page = browser.new_page()
    page.goto(reports.picture(kernel, style).as_uri())
    assert page.locator("g[data-operation] text").count() > 4
    assert page.evaluate(OVERFLOWING) == []
    page.close()
