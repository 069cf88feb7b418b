"""Every operation stands on the timeline at its cycle."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from reports import Reports, data_of

BARS = """view => [...document.querySelectorAll(`[data-view=${view}] .bar`)].map(bar => {
  const box = bar.querySelector("rect").getBoundingClientRect();
  return { ...bar.dataset, shown: bar.style.display !== "none", left: box.left, right: box.right,
           middle: (box.top + box.bottom) / 2, text: bar.querySelector("text")?.textContent ?? "" };
})"""

KERNELS = ["attention_forward", "attention_forward_causal", "attention_backward", "gemm_tma"]


def bars(page: Page, view: str = "timeline") -> list[dict]:
    """The data of a chart's bars, and their places on the screen."""
    return page.evaluate(BARS, view)


@pytest.fixture(scope="module", params=KERNELS)
def kernel(request: pytest.FixtureRequest, reports: Reports, forward: Path) -> Path:
    return forward if request.param == "attention_forward" else reports.kernel(request.param)


def test_every_operation_is_at_its_cycle(kernel, show):
    page, data = show(kernel), data_of(kernel)
    found = {(b["loop"], b["operation"], b["iteration"], b.get("unit"), b["start"], b["end"]) for b in bars(page)}
    assert len(data["loops"]) == page.locator("[data-view=timeline]").count()
    expected = set()
    for index, loop in enumerate(data["loops"]):
        schedule = loop["schedule"]
        entries = {entry["name"]: entry for entry in schedule["problem"]["graph"]["operations"]}
        for placed in schedule["operations"]:
            for iteration in range(schedule["stages"] + 2):
                start = placed["cycle"] + iteration * schedule["initiation_interval"]
                entry = entries[placed["name"]]
                own = (str(index), placed["name"], str(iteration))
                expected.add((*own, None, str(start), str(start + max(1, entry["cycles"]))))
                for use in entry.get("units", []):
                    first = start + use.get("start", 0)
                    expected.add((*own, use["unit"], str(first), str(first + use["cycles"])))
    assert found == expected


def test_cycles_are_to_scale(kernel, show):
    page = show(kernel)
    for chart in range(page.locator("[data-view=timeline]").count()):
        shown = [bar for bar in bars(page) if bar["shown"] and bar["loop"] == str(chart)]
        first = min(shown, key=lambda bar: int(bar["start"]))
        last = max(shown, key=lambda bar: int(bar["start"]))
        pixels = (last["left"] - first["left"]) / (int(last["start"]) - int(first["start"]))
        for bar in shown:
            left = first["left"] + pixels * (int(bar["start"]) - int(first["start"]))
            assert bar["left"] == pytest.approx(left, abs=1), bar
            length = pixels * (int(bar["end"]) - int(bar["start"]))
            # One pixel at least; some space to the next.
            assert bar["right"] - bar["left"] == pytest.approx(max(1, length), abs=2.5), bar


def test_only_bars_next_to_others_in_the_same_pixel_are_left_out(kernel, show):
    shown, hidden = [], []
    for bar in bars(show(kernel)):
        (shown if bar["shown"] else hidden).append(bar)
    for bar in hidden:
        near = [s for s in shown if s["loop"] == bar["loop"] and s.get("unit") == bar.get("unit")]
        pixel = max(int(s["end"]) for s in near) / 1000
        start, end = int(bar["start"]), int(bar["end"])
        assert end - start < 2 * pixel, bar
        assert any(int(s["start"]) <= end + pixel and start <= int(s["end"]) + pixel for s in near), bar


def test_operations_of_a_group_stand_in_its_rows(forward, show):
    page, data = show(forward), data_of(forward)
    groups = {placed["name"]: placed["group"] for placed in data["loops"][0]["schedule"]["operations"]}
    rows: dict[int, set[int]] = {}
    for bar in bars(page):
        if "unit" not in bar and bar["shown"]:
            rows.setdefault(round(bar["middle"]), set()).add(groups[bar["operation"]])
    assert all(len(found) == 1 for found in rows.values()), rows


def test_prologue_steady_state_and_epilogue_are_marked(forward, show):
    page = show(forward)
    names = page.locator("[data-view=timeline] .band-name").all_text_contents()
    assert names == ["prologue", "steady state", "epilogue"]
    # The steady state begins where the last stage of the first iteration does.
    steady = page.locator("[data-view=timeline] .band.steady").bounding_box()
    at = {(b["operation"], b["iteration"]): b for b in bars(page) if "unit" not in b}
    assert steady["x"] == pytest.approx(at["k", "1"]["left"], abs=1.5)
    assert steady["x"] + steady["width"] > at["k", "3"]["right"]


def test_more_iterations_can_be_shown(forward, show):
    page = show(forward)
    before = len(bars(page))
    page.get_by_role("button", name="One iteration more").click()
    assert len(bars(page)) == before * 5 // 4
    assert {bar["iteration"] for bar in bars(page)} == {"0", "1", "2", "3", "4"}


def test_the_steady_state_is_the_schedule_folded(forward, show):
    page, data = show(forward), data_of(forward)
    schedule = data["loops"][0]["schedule"]
    interval = schedule["initiation_interval"]
    starts = {(bar["name"], int(bar["slot"])) for bar in bars(page, "steady")}
    for placed in schedule["operations"]:
        if placed["unit"] is not None:
            assert (placed["name"], placed["cycle"] % interval) in starts


def test_the_table_has_the_same(forward, show):
    page, data = show(forward), data_of(forward)
    for placed in data["loops"][0]["schedule"]["operations"]:
        cells = page.locator(f'tr[data-row="{placed["name"]}"] td').all_text_contents()
        assert cells[:3] == [placed["name"], placed["kind"], f"attention_forward.py:{placed['source']['line']}"]
        assert cells[3:7] == [str(placed["group"]), placed["unit"], str(placed["cycle"]), str(placed["stage"])]
