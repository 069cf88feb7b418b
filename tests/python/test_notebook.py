"""The representation of a schedule in notebooks and terminals."""

from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
import twill_gpu

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SVG = "image/svg+xml"


def drawn(picture):
    """Names of the operations in a picture, which must be well formed."""
    root = ElementTree.fromstring(picture)
    assert root.tag == "{http://www.w3.org/2000/svg}svg" and float(root.get("width")) > 0
    return {one.get("data-operation") for one in root.iter("{http://www.w3.org/2000/svg}g")} - {None}


@pytest.fixture(scope="module")
def found():
    return twill_gpu.schedule(EXAMPLES / "attention_forward.ttir", machine="h200")


def shown(one):
    """The representations of an object in Jupyter, by MIME type."""
    formatters = pytest.importorskip("IPython.core.formatters")
    return formatters.DisplayFormatter().format(one)[0]


def test_a_picture(found):
    for one in (found, found.loops[0]):
        forms = shown(one)
        assert set(forms) == {"text/plain", SVG, "text/html"}
        assert drawn(forms[SVG]) == {operation.name for operation in found.operations}
        assert "I = 2048 cycles" in forms[SVG] and "<pre" not in forms[SVG] and "<script" not in forms[SVG]
        # Readable on light and dark pages: it brings its own paper and ink for both.
        assert "prefers-color-scheme: dark" in forms[SVG] and 'class="paper"' in forms[SVG]


def test_text_for_terminals(found):
    assert shown(found)["text/plain"] == repr(found) == "Schedule(LoopSchedule('attention_forward', I = 2048, optimal))"


def test_all_loops_are_in_one_picture():
    found = twill_gpu.schedule(EXAMPLES / "attention_forward_causal.ttir", machine="h200", work_limit=2_000_000)
    names = {name for loop in found.loops for name in (operation.name for operation in loop.operations)}
    assert len(found.loops) == 2 and drawn(found.svg()) == names


def test_no_picture_without_a_schedule():
    small = twill_gpu.Machine("h200").with_numbers("small", {"memory.shared_bytes": 65536})
    found = twill_gpu.schedule(EXAMPLES / "attention_forward.ttir", small)
    assert found.svg() is None
    assert shown(found) == {"text/plain": "Schedule(LoopSchedule('attention_forward', I = None, infeasible))"}


def frame_of(text):
    """The attributes of the one frame of a widget."""
    frames = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attributes):
            if tag == "iframe":
                frames.append(dict(attributes))

    Reader().feed(text)
    assert len(frames) == 1
    return frames[0]


def test_the_page_is_in_the_output(found, tmp_path):
    """The same page as that of `report`, without a server and with nothing of the notebook in reach."""
    found.report(tmp_path / "report.html", explain_limit=None)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    frame = frame_of(shown(found)["text/html"])
    assert frame["srcdoc"] == page and frame["sandbox"] == "allow-scripts" and "src" not in frame
    assert frame["title"] == "Twill: attention_forward"


def test_large_graphs_have_a_page():
    found = twill_gpu.gaus(None, random="nodes=40", time_limit=2)
    assert "<!doctype html>" in frame_of(shown(found)["text/html"])["srcdoc"]


def test_scheduled_kernels_have_the_page_of_their_schedule(found, tmp_path):
    kernel = object.__new__(twill_gpu.ScheduledKernel)
    kernel.folder, kernel.name = tmp_path, "mine"
    assert kernel._repr_html_() is None
    (tmp_path / "schedule.json").write_text(found.to_json())
    frame = frame_of(kernel._repr_html_())
    assert frame["title"] == "Twill: mine" and "attention_forward on h200" in frame["srcdoc"]
