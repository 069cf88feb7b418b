"""The report of a schedule of a dataflow graph."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from reports import Reports, data_of, settle


@pytest.fixture(scope="module")
def report(reports: Reports) -> Path:
    return reports.dataflow(300)


def find(page: Page, name: str) -> None:
    page.get_by_label("Name contains").fill(name)


def test_every_operation_is_in_the_table_at_its_step(report, show):
    page, file = show(report), data_of(report)["dataflow"]
    found = {}
    while True:
        rows = page.locator("tr[data-row]").evaluate_all("rows => rows.map(r => [r.dataset.row, +r.dataset.start])")
        found.update(rows)
        following = page.get_by_role("button", name="Next page")
        if following.is_disabled():
            break
        following.click()
    names = [operation["name"] for operation in file["graph"]["operations"]]
    assert found == dict(zip(names, file["steps"], strict=True))


def test_the_figures_are_those_of_the_summary(report, show):
    page, summary = show(report), data_of(report)["dataflow"]["summary"]
    text = page.locator(".dataflow > .figures").inner_text()
    assert str(summary["objective"]["value"]) in text and str(summary["objective"]["lower_bound"]) in text
    page.locator("#occupancy figcaption").first.scroll_into_view_if_needed()
    captions = page.locator("#occupancy figcaption").all_inner_texts()
    for resource, peak in summary["peaks"].items():
        assert any(caption.startswith(f"{resource} peak {peak} ") for caption in captions), captions
    assert any(caption.startswith(f"storage peak {summary['storage']} ") for caption in captions), captions


def test_a_selected_operation_is_where_its_step_is(report, show):
    page, file = show(report), data_of(report)["dataflow"]
    placed = zip(file["steps"], file["graph"]["operations"], strict=True)
    end = max(start + operation.get("latency", 1) for start, operation in placed)
    for index in (0, 7, 150, 299):
        name = file["graph"]["operations"][index]["name"]
        find(page, name)
        page.locator(f'tr[data-row="{name}"] .pick').click()
        cursor = page.locator(".placement .cursor")
        expect(cursor).to_have_attribute("data-operation", name)
        assert cursor.get_attribute("data-start") == str(file["steps"][index])
        field, box = page.locator(".placement canvas").bounding_box(), cursor.bounding_box()
        assert box["x"] - field["x"] == pytest.approx(field["width"] * file["steps"][index] / end, abs=1.5)


def test_a_click_on_the_canvas_finds_the_operation(report, show):
    page, file = show(report), data_of(report)["dataflow"]
    name = file["graph"]["operations"][42]["name"]
    find(page, name)
    page.locator(f'tr[data-row="{name}"] .pick').click()
    cursor, canvas = page.locator(".placement .cursor"), page.locator(".placement canvas")
    box, field = cursor.bounding_box(), canvas.bounding_box()
    page.get_by_role("button", name="Clear").click()
    expect(cursor).to_have_count(0)
    x, y = box["x"] - field["x"] + box["width"] / 2, box["y"] - field["y"] + box["height"] / 2
    canvas.click(position={"x": x, "y": y})
    expect(page.locator(".details")).to_have_attribute("data-selected", name)


def test_keys_walk_and_zoom(report, show):
    page = show(report)
    placement = page.locator(".placement")
    placement.focus()
    page.keyboard.press("+")
    settle(page)
    assert float(placement.get_attribute("data-zoom")) == pytest.approx(1.5)
    page.keyboard.press("0")
    settle(page)
    assert float(placement.get_attribute("data-zoom")) == 1
    page.keyboard.press("Enter")
    cursor = page.locator(".placement .cursor")
    first = cursor.get_attribute("data-operation")
    page.keyboard.press("ArrowRight")
    expect(cursor).not_to_have_attribute("data-operation", first)
    page.keyboard.press("Escape")
    expect(cursor).to_have_count(0)


def test_only_what_is_seen_is_painted(report, show):
    page, file = show(report), data_of(report)["dataflow"]
    placement = page.locator(".placement")
    settle(page)
    assert int(placement.get_attribute("data-painted")) == len(file["steps"])
    placement.focus()
    for _ in range(4):
        page.keyboard.press("+")
    settle(page)
    assert 0 < int(placement.get_attribute("data-painted")) < len(file["steps"]) / 2
