"""Hover, click, keys, zoom and pan on a report."""

import pytest
from playwright.sync_api import Locator, Page, expect

from reports import data_of, settle
from test_timeline import bars


def bar(page: Page, operation: str, iteration: int) -> Locator:
    """An operation's bar in its group's row."""
    return page.locator(
        f'[data-view=timeline] .bar[data-operation="{operation}"][data-iteration="{iteration}"]:not([data-unit])'
    )


def chart(page: Page) -> Locator:
    return page.locator("[data-view=timeline]").first


def width(page: Page, operation: str = "qk.0") -> float:
    return bar(page, operation, 1).locator("rect").bounding_box()["width"]


def test_hover_tells_what_an_operation_is(forward, show):
    page = show(forward)
    tooltip = page.get_by_role("tooltip")
    bar(page, "acc.dot.0", 1).hover()
    text = tooltip.inner_text()
    for words in ("acc.dot.0", "dot, asynchronous", "attention_forward.py:55", "stage 1", "tensor for 512"):
        assert words in text
    placed = next(o for o in data_of(forward)["loops"][0]["schedule"]["operations"] if o["name"] == "acc.dot.0")
    start = placed["cycle"] + 2048
    assert f"{start} to {start + 512} (512)" in text
    page.mouse.move(5, 5)
    assert tooltip.is_hidden()


def test_focus_tells_the_same_as_hover(forward, show):
    page = show(forward)
    bar(page, "qk.0", 0).focus()
    assert "dot, asynchronous" in page.get_by_role("tooltip").inner_text()


def test_click_lights_up_neighbours_across_iterations(forward, show):
    page, data = show(forward), data_of(forward)
    bar(page, "acc.multiply.0", 2).click()
    expect(page.locator(".bar.selected")).not_to_have_count(0)
    lit = page.locator("[data-view=timeline] .bar.lit:not([data-unit])")
    found = set(lit.evaluate_all("bars => bars.map(bar => `${bar.dataset.operation} ${bar.dataset.iteration}`)"))
    expected = {"acc.multiply.0 2"}
    for dependence in data["loops"][0]["schedule"]["problem"]["graph"]["dependences"]:
        distance = dependence.get("distance", 0)
        if dependence["to"] == "acc.multiply.0":
            expected.add(f"{dependence['from']} {2 - distance}")
        if dependence["from"] == "acc.multiply.0" and 2 + distance < 4:
            expected.add(f"{dependence['to']} {2 + distance}")
    assert "acc.dot.0 1" in expected
    assert found == expected
    assert page.locator("[data-view=timeline] path.link.direct").count() >= len(expected) - 1
    assert page.locator(".details h4").inner_text().startswith("acc.multiply.0")


def test_the_whole_chain_reaches_further(forward, show):
    page = show(forward)
    bar(page, "acc.dot.0", 2).click()
    lit = page.locator("[data-view=timeline] .bar.lit:not([data-unit])")
    expect(lit).not_to_have_count(0)
    few = lit.count()
    page.get_by_label("whole chain").check()
    expect(page.locator('[data-view=timeline] .bar.lit[data-operation="k"][data-iteration="0"]')).not_to_have_count(0)
    assert lit.count() > 2 * few


def test_barriers_are_told_in_words(forward, show):
    page, data = show(forward), data_of(forward)
    bar(page, "qk.0", 3).click()
    depth = next(c["depth"] for c in data["loops"][0]["schedule"]["channels"] if c["buffer"] == "k")
    row = page.locator('.barriers tr[data-buffer="k"][data-barrier="full"]').first
    assert row.get_attribute("data-slot") == str(3 % depth)
    assert row.get_attribute("data-phase") == str(3 // depth % 2)
    for words in (f"full[{3 % depth}]", "k of iteration 3", "qk.0 of iteration 3"):
        assert words in row.inner_text()


def test_an_operation_lights_up_in_every_view(forward, show):
    page = show(forward)
    page.locator('.node[data-node="qk.1"]').click()
    expect(page.locator('[data-view=timeline] .bar.selected[data-operation="qk.1"]')).not_to_have_count(0)
    expect(page.locator('[data-view=steady] .bar.selected[data-name="qk.1"]')).not_to_have_count(0)
    expect(page.locator('tr.selected[data-row="qk.1"]')).to_have_count(1)
    page.get_by_role("button", name="Clear").click()
    expect(page.locator(".bar.selected, .node.selected, tr.selected")).to_have_count(0)


def test_the_keyboard_reaches_everything(forward, show):
    page = show(forward)
    chart(page).focus()
    page.keyboard.press("Enter")
    focused = "document.activeElement.dataset.operation"
    assert page.evaluate(focused) == "k"
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused) == "v"
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.classList.contains('bar')")
    operation = page.evaluate(focused)
    page.keyboard.press("Enter")
    expect(page.locator(".details")).to_have_attribute("data-selected", operation)
    page.keyboard.press("Escape")
    expect(page.locator(".details")).to_have_count(0)
    assert page.evaluate("document.activeElement.dataset.view") == "timeline"


def test_keys_zoom_and_pan(forward, show):
    page = show(forward)
    chart(page).focus()
    before = width(page)
    page.keyboard.press("+")
    settle(page)
    assert width(page) == pytest.approx(1.5 * before, rel=0.05)
    left = bar(page, "qk.0", 2).locator("rect").bounding_box()["x"]
    page.keyboard.press("ArrowRight")
    settle(page)
    assert bar(page, "qk.0", 2).locator("rect").bounding_box()["x"] < left - 50
    page.keyboard.press("0")
    settle(page)
    assert width(page) == pytest.approx(before, rel=0.01)
    page.keyboard.press("-")
    settle(page)
    assert width(page) == pytest.approx(before, rel=0.01), "nothing is beyond the whole"


def test_wheel_zooms_with_control_and_scrolls_without(forward, show):
    page = show(forward)
    before = width(page)
    # Over the operation whose width is looked at.
    box = bar(page, "qk.0", 1).bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 8)
    page.mouse.wheel(0, 100)
    settle(page)
    assert page.evaluate("scrollY") > 0
    assert width(page) == pytest.approx(before, rel=0.01)
    page.evaluate("scrollTo(0, 0)")
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    settle(page)
    assert width(page) == pytest.approx(2**1.2 * before, rel=0.03)
    assert page.evaluate("scrollY") == 0


def test_drag_pans_and_is_no_click(forward, show):
    page = show(forward)
    page.locator("#timeline-0").get_by_role("button", name="Zoom in").click()
    settle(page)
    rect = bar(page, "qk.0", 1).locator("rect").bounding_box()
    page.mouse.move(rect["x"] + 20, rect["y"] + 8)
    page.mouse.down()
    page.mouse.move(rect["x"] + 100, rect["y"] + 8, steps=4)
    page.mouse.up()
    settle(page)
    assert bar(page, "qk.0", 1).locator("rect").bounding_box()["x"] == pytest.approx(rect["x"] + 80, abs=3)
    assert page.locator(".details").count() == 0


def test_short_operations_appear_when_zoomed(forward, show):
    page = show(forward)
    chart(page).focus()
    for _ in range(14):
        page.keyboard.press("+")
    settle(page)
    shown = [b for b in bars(page) if b["shown"]]
    assert len(shown) < 40, "what is out of sight is not drawn"
    assert all(b["right"] - b["left"] >= 1 for b in shown)
    chart(page).focus()
    page.keyboard.press("0")
    settle(page)
    bar(page, "row_sum.fma.0", 1).focus()
    assert bar(page, "row_sum.fma.0", 1).is_visible()


def test_the_theme_goes_round(forward, show):
    page = show(forward, color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    button = page.get_by_role("button", name="Theme")
    button.click()
    dark = page.evaluate(background)
    assert button.inner_text() == "Theme: dark" and dark != light
    button.click()
    assert button.inner_text() == "Theme: light" and page.evaluate(background) == light
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(background) == light
    button.click()
    assert button.inner_text() == "Theme: system" and page.evaluate(background) == dark
