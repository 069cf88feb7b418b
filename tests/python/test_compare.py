"""Two schedules side by side: what is said to differ, in text, as data and in notebooks."""

from html.parser import HTMLParser
from pathlib import Path

import pytest
import twill_gpu

KERNEL = Path(__file__).resolve().parents[2] / "examples" / "attention_forward.ttir"


@pytest.fixture(scope="module")
def one():
    return twill_gpu.schedule(KERNEL, machine="h200")


def test_the_same_is_the_same(one):
    found = twill_gpu.compare(one, one)
    assert found.is_same and found.speedup == 1 and not found.loops[0].changes and not found.loops[0].moves
    assert "nothing differs" in str(found)


def test_quantities_that_differ_and_operations_that_moved(one):
    slow = twill_gpu.Machine("h200").with_numbers("slow", {"tensor_core.flop_per_cycle.f16": 2048})
    found = twill_gpu.compare(one, twill_gpu.schedule(KERNEL, machine=slow), ("h200", "half"))
    assert not found.is_same and found.speedup == pytest.approx(0.5, abs=0.01)
    changes = {change.what: (change.a, change.b) for change in found.loops[0].changes}
    assert changes["machine"] == ("h200", "slow") and changes["initiation interval"][0] == 2048
    assert changes["initiation interval"][1] == 2 * 2048
    text = str(found)
    assert "a: h200" in text and "+100.0 %" in text and "stand elsewhere" in text
    assert all(len(line) <= 110 for line in text.splitlines())
    for move in found.loops[0].moves:
        assert move.a != move.b and str(move).startswith(move.operation)


def test_operations_that_only_one_has(one):
    other = twill_gpu.schedule(KERNEL, machine="h200", sub_tiles=1, work_limit=100_000)
    found = twill_gpu.compare(one, other)
    moves = {move.operation: move for move in found.loops[0].moves}
    assert moves["qk.1"].b is None and str(moves["qk.1"]).endswith("only in a") and moves["qk.1"].line
    assert "only in a: " in str(found) and len(found.loops[0].only_in_a) > len(found.loops[0].only_in_b)


def test_a_schedule_that_does_not_exist(one):
    small = twill_gpu.Machine("h200").with_numbers("small", {"memory.shared_bytes": 65536})
    found = twill_gpu.compare(one, twill_gpu.schedule(KERNEL, small))
    changes = {change.what: (change.a, change.b) for change in found.loops[0].changes}
    assert changes["status"] == ("optimal", "infeasible") and changes["initiation interval"] == (2048, None)
    assert found.speedup is None and "there is no schedule" in found._repr_html_()


def test_in_a_notebook(one):
    text = twill_gpu.compare(one, twill_gpu.schedule(KERNEL, machine="h100"), ("a < b", "h100"))._repr_html_()
    tags, frames = [], []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attributes):
            tags.append(tag)
            if tag == "iframe":
                frames.append(dict(attributes))

    Reader().feed(text)
    assert tags.count("figure") == 2 and "table" in tags and "details" in tags and "script" not in tags
    assert [frame["sandbox"] for frame in frames] == ["allow-scripts"] * 2
    assert "attention_forward on h200" in frames[0]["srcdoc"] and "attention_forward on h100" in frames[1]["srcdoc"]
    assert "a &lt; b" in text and "a < b" not in text
    # What differs is bold, and nothing else.
    assert '<tr style="font-weight: bold"><td>machine</td><td>h200</td><td>h100</td>' in text
    assert "<tr><td>status</td><td>optimal</td><td>optimal</td>" in text


def test_other_numbers_of_loops(one):
    causal = twill_gpu.schedule(KERNEL.with_name("attention_forward_causal.ttir"), machine="h200", work_limit=200_000)
    with pytest.raises(twill_gpu.InputError, match="a has 1 loops and b 2"):
        twill_gpu.compare(one, causal)
