"""A finger: bars tell what they are when they are tapped, and tables show that they scroll."""

import pytest
from playwright.sync_api import Page, expect

from conftest import PHONE
from reports import Reports, data_of


@pytest.fixture
def phone(forward, show) -> Page:
    return show(forward, PHONE, has_touch=True)


def tap_next_to(page: Page, selector: str, away: float) -> None:
    """Taps N pixels left of an element."""
    box = page.locator(selector).first.bounding_box()
    page.touchscreen.tap(box["x"] - away, box["y"] + box["height"] / 2)


def test_a_tap_tells_what_an_operation_is(phone, forward):
    placed = next(o for o in data_of(forward)["loops"][0]["schedule"]["operations"] if o["name"] == "p.exp2.0")
    phone.locator('[data-view=timeline] .bar[data-operation="p.exp2.0"]').first.tap()
    tip = phone.get_by_role("tooltip")
    expect(tip).to_be_visible()
    text = tip.inner_text()
    for words in ("p.exp2.0", f"{placed['cycle']} to ", f"warp group\n{placed['group']}", "xu for 512"):
        assert words in text
    box = tip.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"]
    # It stays until something else is touched.
    phone.wait_for_timeout(300)
    assert tip.is_visible()
    phone.locator("h1").tap()
    expect(tip).to_be_hidden()


def test_a_tap_tells_where_there_is_code_which_scrolls_to_the_operation(compiled, show):
    page = show(compiled, PHONE, has_touch=True)
    page.locator('[data-view=timeline] .bar[data-operation="qk.1"]').first.tap()
    page.wait_for_timeout(300)
    expect(page.get_by_role("tooltip")).to_contain_text("qk.1")
    page.mouse.wheel(0, 100)
    expect(page.get_by_role("tooltip")).to_be_hidden()


def test_a_tap_on_another_bar_tells_of_that(phone):
    tip = phone.get_by_role("tooltip")
    phone.locator('[data-view=timeline] .bar[data-operation="qk.0"]').first.tap()
    expect(tip).to_contain_text("qk.0")
    phone.locator('[data-view=timeline] .bar[data-operation="v"]').first.tap()
    expect(tip).to_contain_text("v")
    expect(tip).not_to_contain_text("qk.0")
    phone.locator("[data-view=timeline] .axis text").first.tap()
    expect(tip).to_be_hidden()


def test_a_finger_is_wider_than_a_bar(phone):
    tip = phone.get_by_role("tooltip")
    first = '[data-view=timeline] .bar[data-operation="qk.1"][data-iteration="0"]'
    tap_next_to(phone, first, 10)
    expect(tip).to_contain_text("qk.1")
    tap_next_to(phone, first, 40)
    expect(tip).to_be_hidden()


def test_a_tap_tells_in_other_charts_too(reports: Reports, forward, show):
    page = show(forward, PHONE, has_touch=True)
    bar = page.locator('[data-view=steady] .bar[data-name="qk.0"]').first
    bar.scroll_into_view_if_needed()
    bar.tap()
    expect(page.get_by_role("tooltip")).to_contain_text("qk.0")
    page = show(reports.dataflow(300), PHONE, has_touch=True)
    canvas = page.locator(".placement canvas")
    canvas.scroll_into_view_if_needed()
    tip = page.get_by_role("tooltip")
    box = canvas.bounding_box()
    for step in range(1, 12):
        page.touchscreen.tap(box["x"] + 30 * step, box["y"] + 60)
        if tip.count() and tip.is_visible():
            break
    assert "latency" in tip.inner_text()
    page.locator("#placement h3").tap()
    expect(tip).to_be_hidden()


SHADOW = """frame => getComputedStyle(frame, "::after").boxShadow.match(/inset/g).length - (
  getComputedStyle(frame, "::after").boxShadow.match(/rgba?\\([^)]*0\\) 0px 0px 0px 0px inset/g) ?? []).length"""


def edges_are(page: Page, *edges: str) -> None:
    """The edges of the table of operations beyond which there is more have a shadow, and no others."""
    frame = page.locator("#operations-0 .scroll-frame")
    expect(frame).to_have_attribute("data-more", " ".join(edges))
    # The style follows the attribute.
    assert frame.evaluate(SHADOW) == len(edges)


def scroll(page: Page, left: str, top: str) -> None:
    page.locator("#operations-0 .scroll").evaluate(f"pane => pane.scrollTo({left}, {top})")


def test_tables_show_that_they_scroll(phone):
    phone.locator("#operations-0").scroll_into_view_if_needed()
    edges_are(phone, "right", "down")
    scroll(phone, "60", "60")
    edges_are(phone, "left", "right", "up", "down")
    scroll(phone, "pane.scrollWidth", "pane.scrollHeight")
    edges_are(phone, "left", "up")


def test_a_table_that_is_there_whole_has_no_shadow(phone, forward, show):
    phone.locator("#solved-0").scroll_into_view_if_needed()
    # Sizes are known once another table has its edges.
    edges_are(phone, "right", "down")
    assert phone.locator("#solved-0 .scroll-frame").first.get_attribute("data-more") == ""
    desk = show(forward)
    desk.locator("#operations-0").scroll_into_view_if_needed()
    edges_are(desk, "down")


def test_the_list_of_parts_shows_that_it_scrolls(phone):
    nav = phone.locator("nav")
    expect(nav).to_have_attribute("data-more", "right")
    assert "gradient" in nav.evaluate("nav => getComputedStyle(nav).maskImage")
    nav.evaluate("nav => nav.scrollTo(nav.scrollWidth, 0)")
    expect(nav).to_have_attribute("data-more", "left")
    assert nav.evaluate("nav => getComputedStyle(nav).maskImage") == "none"
