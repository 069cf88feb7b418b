"""The representation of a schedule in notebooks and terminals."""

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
        assert set(forms) == {"text/plain", SVG}
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
