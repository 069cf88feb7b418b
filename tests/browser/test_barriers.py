"""Barriers of the selected operation, from arrival to wait: they are those that the channels of the schedule need."""

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from reports import EXAMPLES, Reports, data_of, settle
from test_interaction import bar

MARKS = "marks => marks.map(m => ({ ...m.dataset }))"


def handshakes(page: Page) -> Locator:
    return page.locator("[data-view=timeline] .handshake")


def met(schedule: dict, operation: str, iteration: int) -> set[tuple]:
    """The barriers of an operation: barrier, value, reading group, slot, phase, cycles of arrival and wait;
    from the schedule and its graph as docs/formats.md defines them."""
    interval = schedule["initiation_interval"]
    placed = {one["name"]: one for one in schedule["operations"]}
    graph = schedule["problem"]["graph"]
    described = {one["name"]: one for one in graph["operations"]}

    def over(name: str) -> int:
        return max(described[name]["cycles"], described[name].get("latency", 0))

    found = set()
    for channel in schedule["channels"]:
        value, depth = channel["buffer"], channel["depth"]
        producer = described[value]
        streaming = producer.get("streaming", False)
        crosses = "registers" in producer["result"]
        readers = [
            edge
            for edge in graph["dependences"]
            if edge["from"] == value and placed[edge["to"]]["group"] == channel["to"] and edge["value"]
        ]
        assert readers, "a channel is read"
        for made in range(iteration + depth + 9):
            place = (value, channel["to"], made % depth, made // depth % 2)
            reads = [
                placed[edge["to"]]["cycle"] + (made + edge.get("distance", 0)) * interval
                for edge in graph["dependences"]
                if edge["from"] == value and edge["value"]
            ]
            ends = []
            for edge in readers:
                reader, at = edge["to"], made + edge.get("distance", 0)
                arrives = placed[value]["cycle"] + made * interval + edge["delay"]
                arrives += producer.get("handoff", 0) if crosses else 0
                if streaming:
                    # As late as it may be shown, but in time for its first reader.
                    late = placed[value]["cycle"] + made * interval + max(over(value), producer["transfer_latency"])
                    arrives = min(late, *reads)
                waits = placed[reader]["cycle"] + at * interval
                hold = over(reader) if streaming or crosses else edge["hold"]
                ends.append((waits + hold, reader, at))
                if (operation, iteration) in {(value, made), (reader, at)}:
                    found.add(("full", *place, arrives, waits))
            end, last, at = max(ends)
            if (operation, iteration) in {(last, at), (value, made + depth)}:
                found.add(("empty", *place, end, placed[value]["cycle"] + (made + depth) * interval))
    return found


def drawn(page: Page) -> set[tuple]:
    """The same as the page has it."""
    keys = ("to", "slot", "phase", "arrives", "waits")
    marks = handshakes(page).evaluate_all(MARKS)
    return {(m["barrier"], m["buffer"], *(int(m[key]) for key in keys)) for m in marks}


@pytest.fixture(scope="module")
def backward(reports: Reports) -> Path:
    """Register values are handed from group to group."""
    return reports.kernel("attention_backward")


@pytest.fixture(scope="module")
def blackwell(reports: Reports) -> Path:
    """Values go through tensor memory, some into a later iteration."""
    return reports.of("blackwell", str(EXAMPLES / "attention_forward_m256.ttir"), "--machine", "b200", "--no-explain")


@pytest.mark.parametrize("which", ["forward", "compiled", "backward", "blackwell"])
def test_every_operation_meets_the_barriers_of_its_channels(which, request, show):
    report = request.getfixturevalue(which)
    page, schedule = show(report), data_of(report)["loops"][0]["schedule"]
    assert schedule["channels"]
    iteration, some = 1, 0
    shown = schedule["stages"] + 2
    last = shown * schedule["initiation_interval"]
    for placed in schedule["operations"]:
        page.evaluate(
            """([name, k]) => [...document.querySelectorAll("[data-view=timeline] .bar:not([data-unit])")]
               .find(b => b.dataset.operation === name && +b.dataset.iteration === k)
               .dispatchEvent(new MouseEvent("click", { bubbles: true }))""",
            [placed["name"], iteration],
        )
        expect(page.locator(".details")).to_have_attribute("data-selected", placed["name"])
        expected = met(schedule, placed["name"], iteration)
        # Both ends are among the iterations that are drawn.
        ends = {one for one in expected if max(one[-2:]) < last}
        assert drawn(page) == ends, placed["name"]
        assert page.locator(".barriers tbody tr").count() == len(expected)
        some += len(ends)
    assert some > 4


def test_marks_stand_at_their_cycles_in_the_bars_of_those_who_meet(forward, show):
    page = show(forward)
    bar(page, "qk.0", 2).click()
    mark = handshakes(page).and_(page.locator(".full"))
    expect(mark).to_have_count(1)
    load, dot = (bar(page, name, 2).locator("rect").bounding_box() for name in ("k", "qk.0"))
    disc, triangle = mark.locator(".arrives").bounding_box(), mark.locator(".waits").bounding_box()
    assert disc["x"] + disc["width"] / 2 == pytest.approx(load["x"], abs=1)
    assert load["y"] < disc["y"] + disc["height"] / 2 < load["y"] + load["height"]
    # Its outline is in the box.
    assert triangle["x"] + triangle["width"] == pytest.approx(dot["x"], abs=3)
    assert dot["y"] < triangle["y"] + triangle["height"] / 2 < dot["y"] + dot["height"]
    page.locator("#timeline-0").get_by_role("button", name="Zoom in").click()
    settle(page)
    load, disc = bar(page, "k", 2).locator("rect").bounding_box(), mark.locator(".arrives").bounding_box()
    assert disc["x"] + disc["width"] / 2 == pytest.approx(load["x"], abs=1)


def test_hover_tells_slot_and_phase_and_a_click_keeps_the_selection(forward, show):
    page, schedule = show(forward), data_of(forward)["loops"][0]["schedule"]
    bar(page, "qk.0", 3).click()
    depth = next(c["depth"] for c in schedule["channels"] if c["buffer"] == "k")
    mark = handshakes(page).and_(page.locator(".full")).first
    mark.locator(".waits").hover()
    text = page.get_by_role("tooltip").inner_text()
    for words in (
        f"full[{3 % depth}] of k",
        f"{3 % depth} of {depth}, phase {3 // depth % 2}",
        "group 0 → 1",
        "k of iteration 3",
        "at the latest",
        "qk.0 of iteration 3",
    ):
        assert words in text
    mark.locator(".waits").click()
    expect(page.locator(".details")).to_have_attribute("data-selected", "qk.0")
    page.get_by_role("button", name="Clear").click()
    expect(handshakes(page)).to_have_count(0)


def test_the_first_values_find_their_slots_fresh(forward, show):
    page, schedule = show(forward), data_of(forward)["loops"][0]["schedule"]
    depth = next(c["depth"] for c in schedule["channels"] if c["buffer"] == "v")
    waits = page.locator('.barriers tr[data-barrier="empty"]').filter(has_text="of iteration 0, cycle")
    bar(page, "v", 0).click()
    assert [m for m in drawn(page) if m[0] == "empty"] == []
    expect(waits).to_have_count(0)
    bar(page, "v", depth).click()
    readers = [channel["to"] for channel in schedule["channels"] if channel["buffer"] == "v"]
    assert len([m for m in drawn(page) if m[0] == "empty"]) == len(readers)


def test_the_whole_chain_has_more_of_them(forward, show):
    page = show(forward)
    bar(page, "acc.dot.0", 2).click()
    expect(handshakes(page)).not_to_have_count(0)
    few = drawn(page)
    page.get_by_label("whole chain").check()
    expect(page.locator('[data-view=timeline] .handshake[data-buffer="k"][data-iteration="0"]')).not_to_have_count(0)
    assert few < drawn(page)
