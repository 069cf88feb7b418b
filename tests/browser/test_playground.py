"""The playground: answers of the command on all examples, sliders, links, interrupts, a phone."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from conftest import DESKTOP, PHONE
from reports import ROOT, twill

PLAYGROUND = Path(os.environ.get("TWILL_PLAYGROUND") or ROOT / "target/playground.html")
MOST_BYTES = 6_000_000

pytestmark = pytest.mark.skipif(not PLAYGROUND.exists(), reason="needs cargo xtask playground")

# Their searches end by the clock, after these seconds: nothing says that two find the same by then.
BY_THE_CLOCK = ("attention_forward_m256.ttir", "attention_backward_m128.ttir")
OF_THE_CLOCK = 20

EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.ttir"))
SECONDS = 60


@pytest.fixture
def play(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens the playground; afterwards, no page may have complained or asked for anything but its own worker."""
    contexts, faults = [], []

    def opened(state: str = "", viewport: dict = DESKTOP, **options: object) -> Page:
        context = browser.new_context(viewport=viewport, **options)
        context.set_default_timeout(1000 * SECONDS)
        contexts.append(context)
        page = context.new_page()
        url = PLAYGROUND.as_uri() + state
        own = (url, PLAYGROUND.as_uri(), "data:,")
        page.on("console", lambda said: faults.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda r: None if r.url in own or r.url.startswith("blob:") else faults.append(r.url))
        page.goto(url)
        answered(page, 1)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert faults == []


def aside(page: Page):
    return page.locator("aside")


def answers(page: Page) -> int:
    return int(aside(page).get_attribute("data-answers"))


def answered(page: Page, count: int) -> None:
    """Waits for that many answers."""
    page.wait_for_selector("aside[data-answers]")
    limit = time.monotonic() + SECONDS
    while answers(page) < count:
        assert time.monotonic() < limit, page.locator("aside").inner_text()
        page.wait_for_timeout(5)


def slide(page: Page, slider: str, value: float) -> None:
    """Moves a slider, and waits for the answer."""
    before = answers(page)
    move(page, slider, value)
    answered(page, before + 1)


def move(page: Page, slider: str, value: float) -> None:
    page.locator(f"#{slider}").evaluate(
        "(e, v) => { e.value = v; e.dispatchEvent(new Event('input', { bubbles: true })) }", value
    )


def own(page: Page, text: str) -> None:
    """Gives it an input, and waits for the answer."""
    before = answers(page)
    page.locator("#example").select_option("")
    answered(page, before + 1)
    before = answers(page)
    page.locator("#text").fill(text)
    answered(page, before + 1)


def cycles(page: Page) -> dict[tuple[str, str], int]:
    """The cycle of every operation on the timelines."""
    return dict(
        page.eval_on_selector_all(
            "[data-view=timeline] .bar[data-iteration='0']:not([data-unit])",
            "bars => bars.map(({ dataset }) => [[dataset.loop, dataset.operation].join(' '), Number(dataset.start)])",
        )
    )


def of_command(*arguments: str) -> dict:
    """The data of the page that the command writes."""
    command = [twill(), "report", *arguments, "--no-explain", "--format", "json", "--quiet"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "TWILL_CACHE": "off"}
    )
    assert done.returncode in (0, 2, 3), done.stderr
    return json.loads(done.stdout)


def cycles_of(report: dict) -> dict[str, int]:
    return {
        f"{index} {operation['name']}": operation["cycle"]
        for index, loop in enumerate(report["loops"])
        for operation in loop["schedule"].get("operations") or []
    }


def test_it_is_one_small_file_that_may_ask_for_nothing():
    text = PLAYGROUND.read_text(encoding="utf-8")
    assert len(text.encode()) < MOST_BYTES
    assert "default-src 'none'" in text and "connect-src" not in text


def test_all_examples_have_the_answers_of_the_command(play):
    page = play()
    offered = page.locator("#example option").evaluate_all("all => all.map(one => one.value)")
    assert sorted(offered) == sorted(["", *(path.name for path in EXAMPLES)])
    compared = 0
    for path in EXAMPLES:
        if path.name in BY_THE_CLOCK:
            continue
        if page.locator("#example").input_value() != path.name:
            before = answers(page)
            page.locator("#example").select_option(path.name)
            answered(page, before + 1)
        report = of_command(str(path))
        assert page.locator("h1").inner_text() == report["name"]
        stopped = any(loop["schedule"].get("stopped_by") for loop in report["loops"])
        # On a machine with much else to do the clock may end others, too.
        if not stopped and float(aside(page).get_attribute("data-engine")) < 1000 * OF_THE_CLOCK / 2:
            assert cycles(page) == cycles_of(report), path.name
            compared += 1
    assert compared >= len(EXAMPLES) / 2


def test_sliders_ask_anew_and_the_machine_file_asks_the_command_the_same(play, tmp_path):
    page = play()
    assert aside(page).locator(".slider.bounds label").inner_text().startswith("rate of tensor")
    for slider, value in (("rate-tensor", 1), ("latencies", 2), ("sharedBytes", 180)):
        slide(page, slider, value)
    page.locator(".machine-file summary").click()
    machine = tmp_path / "changed.toml"
    machine.write_text(page.locator(".machine-file pre").inner_text())
    report = of_command(str(ROOT / "examples/attention_forward.ttir"), "--machine", str(machine))
    assert cycles(page) == cycles_of(report)
    assert report["loops"][0]["schedule"]["problem"]["resources"]["shared_memory"] == 180 * 1024
    slide(page, "subTiles", 1)
    options = ["--machine", str(machine), "--sub-tiles", "1"]
    assert cycles(page) == cycles_of(of_command(str(ROOT / "examples/attention_forward.ttir"), *options))


def test_what_bounds_the_interval_is_outlined(play):
    page = play()

    def bounding() -> set[str]:
        lit = "[data-view=timeline] .bar.bounds"
        return set(page.eval_on_selector_all(lit, "bars => bars.map(bar => bar.dataset.unit ?? 'group')"))

    assert bounding() == {"tensor"}
    slide(page, "rate-xu", -2)
    assert bounding() == {"xu"}
    assert aside(page).locator(".slider.bounds label").inner_text().startswith("rate of xu")


def test_bars_move_to_their_places_where_motion_is_welcome(play):
    moving = "() => document.getAnimations().filter(one => one.effect.target.closest('.chart')).length"
    page = play(reduced_motion="no-preference")
    move(page, "rate-tensor", -1)
    limit = time.monotonic() + SECONDS
    while page.evaluate(moving) == 0:
        assert time.monotonic() < limit
    still = play(reduced_motion="reduce")
    slide(still, "rate-tensor", -1)
    assert still.evaluate(moving) == 0


def test_a_link_holds_the_state(play):
    page = play()
    slide(page, "rate-tensor", -1)
    slide(page, "groups", 2)
    page.locator("#link").click()
    expect(page.locator("#link")).to_have_text("Link copied")
    state = page.evaluate("location.hash")
    again = play(state)
    assert again.locator("#rate-tensor").input_value() == "-1"
    assert again.locator("#groups").input_value() == "2"
    assert cycles(again) == cycles(page)
    page.locator("#undo").click()
    answered(page, answers(page) + 1)
    assert page.locator(".slider.changed").count() == 0


@pytest.mark.parametrize("state", ["#s=", "#s=%%%", "#s=eJwDAAAAAAE", "#timeline-0"])
def test_a_broken_link_begins_anew(play, state):
    assert play(state).locator("h1").inner_text() == "attention_forward"


def test_the_command_gives_a_link_with_an_input(play):
    def link(*arguments: str) -> str:
        command = [twill(), "playground", "--no-browser", *arguments]
        environment = {**os.environ, "TWILL_PLAYGROUND": str(PLAYGROUND)}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        address, _, state = done.stdout.strip().partition("#")
        assert address == PLAYGROUND.resolve().as_uri()
        return f"#{state}"

    page = play(link(str(ROOT / "examples/gemm_tma.ttir"), "--machine", "b200"))
    assert page.locator("#machine").input_value() == "b200" and page.locator("#example").input_value() == ""
    report = of_command(str(ROOT / "examples/gemm_tma.ttir"), "--machine", "b200")
    assert cycles(page) == cycles_of(report)
    page = play(link("gemm"))
    assert page.locator("#machine").input_value() == ""
    assert cycles(page) == cycles_of(of_command("gemm"))


def test_wrong_input_is_told_and_the_last_answer_stays(play):
    page = play()
    before = cycles(page)
    own(page, "module {\n  tt.func public @k() {\n    tt.nonsense %1\n  }\n}\n")
    error = page.locator(".error")
    expect(error).to_be_visible()
    assert "input:3" in error.inner_text()
    assert cycles(page) == before
    answer = answers(page)
    page.locator("#text").fill("{}")
    answered(page, answer + 1)
    assert "input" in error.inner_text()
    answer = answers(page)
    page.locator("#example").select_option("gemm_tma.ttir")
    answered(page, answer + 1)
    expect(error).to_have_count(0)


def test_a_search_can_be_stopped(play):
    page = play()
    before = cycles(page)
    page.locator("#example").select_option(BY_THE_CLOCK[0])
    page.locator(".stop").click()
    expect(aside(page)).not_to_have_attribute("data-state", "busy")
    assert cycles(page) == before
    # And so does a newer question, for which nobody waits until the older one is answered.
    page.locator("#example").select_option(BY_THE_CLOCK[1])
    page.wait_for_timeout(300)
    began = time.monotonic()
    page.locator("#example").select_option("gemm_tma.ttir")
    expect(page.locator("h1")).to_have_text("gemm_tma")
    assert time.monotonic() - began < OF_THE_CLOCK / 2


def test_a_phone_has_all_of_it(play):
    page = play(viewport=PHONE, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    slider = page.locator("#rate-tensor")
    slider.scroll_into_view_if_needed()
    before = answers(page)
    box = slider.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"]
    page.touchscreen.tap(box["x"] + box["width"] - 3, box["y"] + box["height"] / 2)
    answered(page, before + 1)
    assert slider.input_value() != "0"
