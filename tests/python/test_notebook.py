"""What notebooks and terminals show of a schedule."""

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


def test_a_picture(found):
    for one in (found, found.loops[0]):
        shown = one._repr_mimebundle_()
        assert drawn(shown[SVG]) == {operation.name for operation in found.operations}
        assert not any("<pre" in text or "<script" in text for text in shown.values())
        # Readable on light and dark pages: it brings its own paper and ink for both.
        assert "prefers-color-scheme: dark" in shown[SVG] and 'class="paper"' in shown[SVG]


def test_text_for_terminals(found):
    assert found._repr_mimebundle_()["text/plain"] == found.timeline() and "I = 2048" in found.timeline()
    assert repr(found) == "Schedule(LoopSchedule('attention_forward', I = 2048, optimal))"


def test_what_jupyter_makes_of_it(found):
    formatters = pytest.importorskip("IPython.core.formatters")
    data, _ = formatters.DisplayFormatter().format(found)
    assert set(data) == {"text/plain", SVG}


def test_all_loops_are_in_one_picture():
    found = twill_gpu.schedule(EXAMPLES / "attention_forward_causal.ttir", machine="h200", work_limit=2_000_000)
    names = {name for loop in found.loops for name in (operation.name for operation in loop.operations)}
    assert len(found.loops) == 2 and drawn(found.svg()) == names


def test_no_picture_without_a_schedule():
    small = twill_gpu.Machine("h200").with_numbers("small", {"memory.shared_bytes": 65536})
    shown = twill_gpu.schedule(EXAMPLES / "attention_forward.ttir", small)._repr_mimebundle_()
    assert set(shown) == {"text/plain"} and "no schedule" in shown["text/plain"].lower()
