"""Measurement versus prediction: traces of an H200."""

import pytest
from playwright.sync_api import Page, expect

from conftest import PHONE
from reports import Reports, changed, data_of, said

BARS = "bars => bars.map(b => [b.dataset.measured, +b.dataset.iteration, +b.dataset.start, +b.dataset.end])"


def measured(page: Page) -> list[list]:
    """The measured bars: operation, iteration, start, end."""
    return page.locator("[data-view=measured] .bar[data-measured]").evaluate_all(BARS)


def test_measured_stands_under_predicted(compiled, show):
    page, data = show(compiled), data_of(compiled)
    trace, schedule = data["trace"], data["loops"][0]["schedule"]
    loop = trace["loops"][0]
    assert (trace["gpu"], schedule["initiation_interval"]) == ("NVIDIA H200", 2048)
    assert "predicted 2048, measured 2910 (+42.1 %), slowed by timestamps at operations" in said(page, "#measured-0 .bound")
    events = [[event[key] for key in ("operation", "iteration", "start", "end")] for event in loop["events"]]
    assert len(events) == 4 * len(schedule["operations"])
    assert sorted(measured(page)) == sorted(events)
    cycles = {placed["name"]: placed["cycle"] for placed in schedule["operations"]}
    for entry in loop["operations"]:
        assert entry["predicted"]["start"] == cycles[entry["operation"]]
        cells = page.locator(f'tr[data-measured="{entry["operation"]}"] td').all_text_contents()
        found = [cell.replace("\u202f", "").replace("−", "-") for cell in cells[2:4]]
        assert found == [f"{entry[what]['start']:g}" for what in ("predicted", "measured")]


def test_predicted_bars_are_of_the_same_iterations(compiled, show):
    page, schedule = show(compiled), data_of(compiled)["loops"][0]["schedule"]
    bars = page.locator("[data-view=measured] .bar[data-operation]")
    found = bars.evaluate_all("bars => bars.map(b => [b.dataset.operation, +b.dataset.iteration, +b.dataset.start])")
    expected = [[o["name"], k, o["cycle"] + 2048 * k] for o in schedule["operations"] for k in range(4)]
    assert sorted(found) == sorted(expected)


def test_marks_at_iterations_cost_nothing(reports: Reports, show):
    page = show(reports.compiled("gemm_tma_n256", "gemm_tma_n256.iterations"))
    assert said(page, "#measured-0 .bound").endswith("predicted 1024, measured 1024 (+0.0 %)")
    assert {name for name, *_ in measured(page)} == {"a.1", "acc.0", "acc.1"}


def test_a_load_that_runs_ahead_is_on_the_axis(compiled, show):
    page = show(compiled)
    chart = page.locator("[data-view=measured]")
    chart.scroll_into_view_if_needed()
    assert min(start for _, _, start, _ in measured(page)) < -2048
    rows = chart.locator("rect.row").first.bounding_box()
    lefts = [bar.bounding_box()["x"] for bar in chart.locator(".bar[data-measured]").all() if bar.is_visible()]
    assert min(lefts) == pytest.approx(rows["x"], abs=1.5)
    note = "The first operation that is no load running ahead starts where it was predicted."
    assert note in said(page, "#measured-0 .note")


def test_hover_and_click_find_the_operation(compiled, show):
    page = show(compiled)
    bar = page.locator('[data-view=measured] .bar[data-measured="p.exp2.0"][data-iteration="1"]')
    bar.scroll_into_view_if_needed()
    bar.hover()
    event = next(
        event
        for event in data_of(compiled)["trace"]["loops"][0]["events"]
        if (event["operation"], event["iteration"]) == ("p.exp2.0", 1)
    )
    text = page.get_by_role("tooltip").inner_text().replace("\u202f", "")
    assert "p.exp2.0, measured" in text and f"{event['start']:g} to {event['end']:g}" in text
    bar.click()
    expect(page.locator('[data-view=timeline] .bar.selected[data-operation="p.exp2.0"]')).not_to_have_count(0)
    expect(page.locator(".details")).to_have_attribute("data-selected", "p.exp2.0")


def test_a_phone_has_it_too(compiled, show):
    page = show(compiled, PHONE)
    assert len(measured(page)) == 112
    assert "measured 2910" in said(page, "#measured-0 .bound")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_number_of_an_iteration_may_be_large(reports: Reports, compiled, show):
    def late(data: dict) -> None:
        events = data["trace"]["loops"][0]["events"]
        events.append({**events[-1], "iteration": 2**32 - 1})

    page, data = show(changed(compiled, reports.folder / "late.html", late)), data_of(compiled)
    bars = page.locator("[data-view=measured] .bar[data-measured]")
    assert bars.count() == len(data["trace"]["loops"][0]["events"]) + 1
    # Its chain ends, however far it is followed.
    name = data["trace"]["loops"][0]["events"][-1]["operation"]
    page.locator(f'#loop-0 tr[data-row="{name}"] .pick').click()
    expect(page.locator("[data-view=measured] .bar.selected")).not_to_have_count(0)
