"""What objects of twill_gpu show in notebooks: a kernel of Jupyter runs the cells, Chromium shows their outputs."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from reports import EXAMPLES

CELLS = f"""
import twill_gpu
found = twill_gpu.schedule({str(EXAMPLES / "attention_forward.ttir")!r}, machine="h200")
found
# %%
twill_gpu.compare(found, twill_gpu.schedule({str(EXAMPLES / "attention_forward.ttir")!r}, machine="h100"), ("one", "other"))
"""


@pytest.fixture(scope="module")
def outputs() -> list[str]:
    """The HTML of each cell."""
    pytest.importorskip("twill_gpu")
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(text.strip()) for text in CELLS.split("# %%")]
    nbclient.NotebookClient(book, timeout=900).execute()
    return [cell.outputs[-1].data["text/html"] for cell in book.cells]


@pytest.fixture
def notebook(browser, tmp_path: Path):
    """Shows outputs on one page, as notebooks do, which may ask for nothing."""
    contexts, faults = [], []

    def opened(*shown: str) -> Page:
        file = tmp_path / "notebook.html"
        file.write_text(f"<!doctype html><meta charset=utf-8><body><h1>Notebook</h1>{''.join(shown)}", encoding="utf-8")
        contexts.append(browser.new_context(viewport={"width": 1200, "height": 900}))
        page = contexts[-1].new_page()
        page.on("console", lambda said: faults.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda asked: faults.append(asked.url) if asked.url not in (file.as_uri(), "data:,") else None)
        page.goto(file.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert faults == []


def test_a_schedule_is_the_page_of_its_report(outputs: list[str], notebook: Callable[..., Page]) -> None:
    page = notebook(outputs[0])
    frame = page.frame_locator("iframe")
    expect(frame.locator("h1")).to_have_text("attention_forward")
    expect(frame.locator("#loop-0")).to_contain_text("2048")
    # It can be used: a bar that is chosen is lit.
    frame.locator("#loop-0 .bar").first.click(force=True)
    expect(frame.locator("#loop-0 .bar.selected")).not_to_have_count(0)
    # Its script reaches nothing of the notebook, nor the notebook it.
    inner = page.frames[1]
    assert inner.evaluate("() => { try { return parent.document.title; } catch { return 'refused'; } }") == "refused"
    assert page.evaluate("document.querySelector('iframe').contentDocument") is None


def test_a_comparison_has_both_pages_side_by_side_and_what_changed(outputs: list[str], notebook: Callable[..., Page]) -> None:
    page = notebook(outputs[1])
    expect(page.locator("tr", has_text="machine")).to_have_css("font-weight", "700")
    expect(page.locator("tr", has_text="machine")).to_contain_text("h100")
    boxes = [page.locator("figure").nth(index).bounding_box() for index in range(2)]
    assert boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    for index, machine in enumerate(("h200", "h100")):
        frame = page.frame_locator(f"figure:nth-of-type({index + 1}) iframe")
        expect(frame.locator("header").first).to_contain_text(machine)
        # It fits its half: nothing stands out to the side.
        assert frame.locator("html").evaluate("page => page.scrollWidth <= page.clientWidth")
