"""Properties of every report: one small file that asks for nothing, runs nothing foreign, and can be read by all."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from conftest import PHONE
from reports import HOSTILE, Reports, data_of, settle

MEGABYTE = 1_000_000

# The least contrast of text with its background, over elements of a selector.
CONTRAST = """selector => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const channels = (...colours) => {
    pen.clearRect(0, 0, 1, 1);
    for (const colour of colours) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = rgb => {
    const [r, g, b] = rgb.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const after = element => {
    const fills = [];
    for (let at = element; at; at = at.parentElement) {
      if (at.matches(".bar-name, .node")) {
        const probe = document.body.appendChild(document.createElement("span"));
        probe.className = at.getAttribute("class");
        probe.style.color = "var(--fill)";
        fills.unshift(getComputedStyle(probe).color);
        probe.remove();
      }
      fills.unshift(getComputedStyle(at).backgroundColor);
    }
    return fills;
  };
  let least = { ratio: 99 };
  for (const element of document.querySelectorAll(selector)) {
    if (!element.textContent.trim() || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const grounds = after(element);
    const text = element instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [light(channels(...grounds, text)), light(channels(...grounds))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const of = String(element.className.baseVal ?? element.className);
    if (ratio < least.ratio) least = { ratio, of, text: element.textContent.slice(0, 40) };
  }
  return least;
}"""


@pytest.fixture(scope="module")
def dataflow(reports: Reports) -> Path:
    return reports.dataflow(300)


@pytest.fixture(params=["forward", "infeasible", "hostile", "dataflow"])
def report(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue(request.param)


def test_it_is_small(report, reports):
    assert report.stat().st_size < MEGABYTE
    assert reports.kernel("attention_backward").stat().st_size < MEGABYTE


def test_names_are_packed(reports):
    assert reports.dataflow(300, letters=400).stat().st_size < reports.dataflow(300).stat().st_size + 300 * 400


def test_it_keeps_to_itself(report, show):
    page = show(report)
    page.mouse.wheel(0, 3000)
    settle(page)
    # That nothing was asked for and no error told is checked when the page is closed.
    assert page.evaluate("performance.getEntriesByType('resource').length") == 0
    policy = page.locator('meta[http-equiv="Content-Security-Policy"]').get_attribute("content")
    assert "default-src 'none'" in policy and "unsafe" not in policy


def test_hostile_names_are_text(hostile, show):
    page = show(hostile)
    names = [operation["name"] for operation in data_of(hostile)["loops"][0]["schedule"]["operations"]]
    assert sorted(names) == sorted(HOSTILE)
    for name in HOSTILE:
        button = page.locator(".operations .pick").filter(has_text=name).first
        button.click()
        expect(page.locator(".details")).to_have_attribute("data-selected", name)
    page.locator("[data-view=timeline] .bar").first.hover()
    settle(page)
    assert page.evaluate("window.hostile") is None
    assert page.locator("main img, main script, main iframe").count() == 0


@pytest.mark.parametrize("viewport", [PHONE, {"width": 320, "height": 600}], ids=["390", "320"])
def test_a_phone_scrolls_down_alone(report, show, viewport):
    page = show(report, viewport)
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_phone_shows_details(forward, show):
    page = show(forward, PHONE, has_touch=True)
    page.locator('[data-view=timeline] .bar[data-operation="qk.0"]').first.tap()
    assert page.locator(".details h4").inner_text().startswith("qk.0")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_it_prints(report, show):
    page = show(report)
    settle(page)
    pdf = page.pdf(prefer_css_page_size=True, print_background=True)
    assert pdf.startswith(b"%PDF") and len(pdf) > 10_000
    page.emulate_media(media="print")
    assert page.locator("nav").is_hidden() and page.locator(".theme").is_hidden()
    assert page.locator("h1").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("selector", [
    "p, td, th, dt, dd, h1, h2, h3, h4, a, button, small, caption, figcaption, .status, .swatch, .hint, output",
    "svg .names text, svg .axis text, svg text.axis, svg .band-name",
    ".bar-name, .node text, .dependence text, .limit text",
])  # fmt: skip
def test_text_stands_out(forward, show, scheme, selector):
    page = show(forward, color_scheme=scheme)
    page.wait_for_selector(".node")
    least = page.evaluate(CONTRAST, selector)
    assert least["ratio"] >= 4.5, least
    assert least["ratio"] < 99, "there is something to look at"


def test_what_can_be_pressed_has_a_name(report, show):
    page = show(report)
    settle(page)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, [role=button], [role=group], [role=img]")]
             .filter(e => !(e.getAttribute("aria-label") || e.textContent.trim() || e.closest("label")))
             .map(e => e.outerHTML.slice(0, 120))"""
    )
    assert nameless == []
    assert page.locator("h1").count() == 1
