"""The cycles of an iteration versus the interval: simulated, estimated from machine code, measured; and the obstacles."""

import pytest
from playwright.sync_api import Page

from reports import EXAMPLES, Reports, changed, data_of


def figures(page: Page, selector: str = "#loop-0 > .figures.cycles .figure") -> dict[str, str]:
    """The text of each figure, by its name."""
    found = {}
    for figure in page.locator(selector).all():
        name, *words = figure.locator("dt, dd").all_inner_texts()
        found[name] = " ".join(" ".join(words).split())
    return found


def rate(flop: int, cycles: int) -> int:
    """TFLOP/s of an H200: 132 multiprocessors at 1830 MHz (machines/h200.toml)."""
    return round(flop / cycles * 1830e6 * 132 / 1e12)


@pytest.fixture(scope="module")
def backward(reports: Reports):
    return reports.assembled("attention_backward", 4974, 152, 120)


def test_a_kernel_far_from_its_interval_says_why(backward, show):
    page = show(backward)
    warning = page.locator("#loop-0 > .warning")
    assert warning.is_visible()
    text = warning.inner_text()
    assert "4974 cycles estimated from machine code, 1.9 × the interval" in text
    simulated = data_of(backward)["loops"][0]["simulated"]
    for words in ("272 bytes of registers are spilled (152 of stores, 120 of loads)", f"warp programs gives {simulated}:"):
        assert words in text


def test_one_near_its_interval_does_not(reports: Reports, show):
    page = show(reports.assembled("attention_forward", 2324, 0, 0))
    assert page.locator(".warning").count() == 0
    found = figures(page)
    assert found["SASS estimate"].startswith("2324 cycles 1.13 × I, ")
    assert found["registers by ptxas"] == "168 a thread no spills"


def test_the_limit_is_1_3_intervals_and_simulated_cycles_count_too(reports: Reports, forward, show):
    def simulated(cycles: int):
        return lambda data: data["loops"][0].update(simulated=cycles)

    near = show(changed(forward, reports.folder / "near.html", simulated(2662)))
    assert near.locator(".warning").count() == 0
    far = show(changed(forward, reports.folder / "far.html", simulated(2663)))
    expected = "2663 cycles simulated, 1.3 × the interval: waits on barriers and issue slots"
    assert expected in far.locator(".warning").inner_text()


def test_figures_are_those_of_the_data_at_the_machine_s_clock(backward, show):
    page, own = show(backward), data_of(backward)["loops"][0]
    flop, simulated = 10 * 2 * 64 * 64 * 128, own["simulated"]
    assert own["flop"] == flop
    found = figures(page)
    assert found["initiation interval I"] == f"2560 cycles at most {rate(flop, 2560)} TFLOP/s"
    assert found["simulated"] == f"{simulated} cycles {simulated / 2560:.2f} × I, {rate(flop, simulated)} TFLOP/s"
    assert found["SASS estimate"] == f"4974 cycles 1.94 × I, {rate(flop, 4974)} TFLOP/s"
    assert found["registers by ptxas"] == "168 a thread 272 bytes spilled"
    assert "all 132 multiprocessors of h200 at its clock, 1830 MHz" in page.locator("#loop-0").text_content()


def test_measured_cycles_stand_next_to_them(compiled, show):
    page, loop = show(compiled), data_of(compiled)["trace"]["loops"][0]
    assert figures(page)["measured"].startswith(f"{loop['initiation_interval']['measured']:g} cycles 1.42 × I, ")
    assert "slowed by timestamps at operations" in figures(page)["measured"]


def test_what_is_not_known_says_how_to_get_it(forward, show):
    found = figures(show(forward))
    assert found["simulated"].startswith("2429 cycles 1.19 × I, ")
    assert found["SASS estimate"] == "not known from twill compile, where Triton is"
    assert found["measured"] == "not known from twill trace, after a run on the GPU"
    assert found["registers by ptxas"] == "not known from twill compile, where Triton is"


def test_rates_are_left_out_where_clock_or_cycles_are_not_those_of_a_machine(reports: Reports, forward, show):
    def elsewhere(data: dict) -> None:
        data["chip"] = None

    page = show(changed(forward, reports.folder / "elsewhere.html", elsewhere))
    assert "TFLOP/s" not in page.locator("#main").text_content()
    kernel = str(EXAMPLES / "gemm_tma.ttir")
    page = show(reports.of("normalised", kernel, "--machine", "h200", "--no-explain", "--normalise", "300"))
    assert "TFLOP/s" not in page.locator("#main").text_content()


def test_loops_have_their_cycles_and_a_kernel_its_registers(reports: Reports, show):
    page = show(reports.kernel("attention_forward_causal"))
    for index in range(2):
        own = figures(page, f"#loop-{index} > .figures.cycles .figure")
        assert {"simulated", "SASS estimate", "measured"} < set(own) and "registers by ptxas" not in own
    assert "registers by ptxas" in figures(page, ".headline .figure")
