"""The package without Triton's launches: schedules, machines, graphs, large graphs, the cache, errors."""

import base64
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import pytest
import twill_gpu

ROOT = Path(__file__).resolve().parents[2]
ATTENTION = ROOT / "examples" / "attention_forward.ttir"
CAUSAL = ROOT / "examples" / "attention_forward_causal.ttir"
EXPERTS = 2048
"""Cycles an iteration of FlashAttention-3's schedule, which is the tensor core's own bound."""


def scaled_gemm():
    """The graph of docs/formats.md."""
    graph = twill_gpu.Graph("scaled-gemm", machine="h100", shared_memory=1024)
    graph.load("A", {"tma": 64}, shared_memory=8192, transfer_latency=650)
    graph.load("B", {"tma": 128}, shared_memory=16384, transfer_latency=650)
    units = [{"unit": "lsu", "cycles": 64}, {"unit": "alu", "start": 32, "cycles": 32}]
    graph.operation("scale", units, result={"registers": 2048}, handoff=190)
    graph.operation("C", {"tensor": 256}, kind="dot", execution="asynchronous", result={"registers": 8192})
    graph.dependence("A", "scale").dependence("scale", "C").dependence("B", "C")
    return graph.dependence("C", "C", 1, tied=True)


class TestSchedules:
    def test_attention_is_the_experts(self):
        found = twill_gpu.schedule(ATTENTION, machine="h200")
        assert (found.ii, found.lower_bound, found.status) == (EXPERTS, EXPERTS, "optimal")
        assert found.stages == -(-found.length // found.ii)
        assert [group.role for group in found.groups] == ["variable_latency", "compute", "compute"]
        dots = [one for one in found.operations if one.unit == "tensor"]
        assert len(dots) == 4 and all(one.source[0].endswith("attention_forward.py") for one in dots)
        found.loops[0].check()

    def test_what_it_says_of_itself(self, tmp_path):
        found = twill_gpu.schedule(scaled_gemm())
        assert found.ii == 256
        assert "I = 256 cycles (optimal in the model of h100: proved)" in found.timeline() == str(found)
        assert max(map(len, found.timeline(width=60).splitlines())) <= 60
        assert "unit tensor is busy 256 cycles" in str(found.explain(what_if=False))
        assert found.explain().what_ifs
        found.save(tmp_path / "schedule.json")
        assert json.loads((tmp_path / "schedule.json").read_text())["initiation_interval"] == 256
        assert "prologue" in found.loops[0].pseudocode()

    def test_a_page_of_it(self, tmp_path):
        for what in (scaled_gemm(), CAUSAL):
            found = twill_gpu.schedule(what, work_limit=2_000_000)
            found.report(tmp_path / "report.html", explain_limit=None)
            page = (tmp_path / "report.html").read_text(encoding="utf-8")
            packed = re.search(r'<script type="application/zlib" id="data">(.*?)</script>', page)[1]
            data = json.loads(zlib.decompress(base64.b64decode(packed)))["page"]
            assert [one["schedule"]["initiation_interval"] for one in data["loops"]] == [one.ii for one in found.loops]
        with pytest.raises(twill_gpu.InputError, match="explain_limit"):
            found.report(tmp_path / "other.html", explain_limit=-1)
        assert not (tmp_path / "other.html").exists()

    def test_loops_that_share_their_groups(self):
        found = twill_gpu.schedule(CAUSAL, machine="h200", work_limit=2_000_000)
        assert [one.lower_bound for one in found.loops] == [EXPERTS, EXPERTS]
        assert json.loads(found.to_json())["format"] == "twill-kernel-schedule"
        with pytest.raises(AttributeError, match=r"schedule.loops\[0\].ii"):
            found.ii  # noqa: B018

    def test_a_function_of_triton(self):
        gemm = pytest.importorskip("gemm_tma")
        tile = "tensordesc<fp16[128, 64]>"
        types = {"a_desc": tile, "b_desc": tile, "c_desc": "tensordesc<fp16[128, 128]>", "K": "i32:16"}
        tiles = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
        for function in (gemm.gemm_tma, twill_gpu.jit(gemm.gemm_tma.fn)):
            found = twill_gpu.schedule(function, "h200", types, tiles)
            assert found.ii == twill_gpu.schedule(ROOT / "examples" / "gemm_tma.ttir", "h200").ii
        assert "def gemm_tma" in found.kernel_source
        assert {"kernel.py", "launch.py", "schedule.json"} <= set(found.compile(assemble=False))
        with pytest.raises(twill_gpu.InputError, match="gemm_tma has the parameters a_desc, b_desc"):
            twill_gpu.schedule(gemm.gemm_tma, "h200", {"a_desc": tile}, tiles)
        with pytest.raises(twill_gpu.InputError, match="needs signature"):
            twill_gpu.schedule(gemm.gemm_tma, "h200")

    def test_nothing_fits(self):
        small = twill_gpu.Machine("h200").with_numbers("small", {"memory.shared_bytes": 65536})
        found = twill_gpu.schedule(ATTENTION, small)
        assert found.status == "infeasible"
        with pytest.raises(twill_gpu.InfeasibleError, match="attention_forward: there is no schedule"):
            found.ii  # noqa: B018
        with pytest.raises(twill_gpu.InfeasibleError, match="no schedule exists"):
            found.compile(assemble=False)


class TestErrors:
    def test_the_place_in_the_users_source(self):
        with pytest.raises(twill_gpu.InputError, match="the loop never runs") as raised:
            twill_gpu.schedule(ROOT / "examples" / "fixtures" / "zero_trip.ttir", machine="h200")
        file, line = raised.value.place
        lines = (ROOT / file).read_text().splitlines()
        assert file.endswith("fixtures.py") and "for " in lines[line - 1]

    def test_what_cannot_be_read(self, tmp_path):
        with pytest.raises(twill_gpu.InputError, match="cannot read"):
            twill_gpu.schedule(tmp_path / "nothing.ttir")
        with pytest.raises(twill_gpu.InputError, match="no built-in graph is named `nothing`"):
            twill_gpu.schedule("nothing")
        with pytest.raises(twill_gpu.InputError, match="did you mean `h200`"):
            twill_gpu.schedule("gemm", machine="h20")
        with pytest.raises(twill_gpu.InputError, match="tt.func|kernel"):
            twill_gpu.schedule("no\nkernel\n")
        with pytest.raises(twill_gpu.InputError):
            twill_gpu.Graph.from_json("{")

    def test_progress_that_raises_ends_the_search(self):
        def stop(text):
            raise RuntimeError(text)

        with pytest.raises(RuntimeError, match="I = "):
            twill_gpu.schedule(ATTENTION, machine="h200", no_cache=True, progress=stop)

    def test_ctrl_c_ends_the_search(self):
        # Its interval is proved within a second, what comes after takes minutes.
        program = f"import twill_gpu; twill_gpu.schedule({str(CAUSAL)!r}, 'h200', no_cache=True, sub_tiles=1)"
        hard = f"import twill_gpu; print('begun', flush=True); [{program.split('; ')[1]} for _ in range(1000)]"
        process = subprocess.Popen([sys.executable, "-c", hard], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode != 0 and "KeyboardInterrupt" in said

    def test_the_gil_is_released(self):
        seen, done = [], threading.Event()

        def count():
            while not done.is_set():
                seen.append(time.monotonic())
                time.sleep(0.001)

        counter = threading.Thread(target=count)
        counter.start()
        begun = time.monotonic()
        twill_gpu.schedule(CAUSAL, machine="h200", work_limit=3_000_000, no_cache=True)
        ended = time.monotonic()
        done.set()
        counter.join()
        assert sum(begun < at < ended for at in seen) > 10


class TestMachines:
    def test_numbers_can_be_changed_and_saved(self, tmp_path):
        h200 = twill_gpu.Machine("h200")
        other = h200.with_numbers("slow", {"latency.transfer": 1300}, source="a test")
        number = other.numbers["latency.transfer"]
        assert (number.value, number.unit, number.provenance, number.source) == (1300, "cycles", "derived", "a test")
        same = {key: value for key, value in other.numbers.items() if key != "latency.transfer"}
        assert same == {key: value for key, value in h200.numbers.items() if key != "latency.transfer"}
        other.save(tmp_path / "slow.toml")
        assert twill_gpu.Machine(tmp_path / "slow.toml") == other != h200
        assert (other.name, other.architecture) == ("slow", "sm_90a")
        assert twill_gpu.schedule(ATTENTION, tmp_path / "slow.toml").ii == EXPERTS

    def test_what_makes_no_sense_is_refused(self):
        h200 = twill_gpu.Machine("h200")
        with pytest.raises(twill_gpu.InputError, match="no number 'memory.shared'"):
            h200.with_numbers("a", {"memory.shared": 1})
        with pytest.raises(twill_gpu.InputError):
            h200.with_numbers("a", {"memory.shared_bytes": -1})
        assert "h200" in twill_gpu.machines()


class TestLargeGraphs:
    def test_a_bound_that_is_reached(self):
        graph = {
            "format": "twill-dataflow",
            "version": 1,
            "name": "four",
            "operations": [{"name": name, "latency": 1, "uses": [{"resource": "alu"}]} for name in "abcd"],
            "dependences": [{"from": "a", "to": "b"}],
            "resources": [{"name": "alu"}],
        }
        found = twill_gpu.gaus(graph, latency=2, time_limit=2)
        assert (found.objective, found.lower_bound, found.is_optimal) == (2, 2, True)
        assert found.starts["a"] < found.starts["b"] and found.latency == 2

    def test_errors(self):
        with pytest.raises(twill_gpu.InputError, match="cannot read"):
            twill_gpu.gaus("nothing.dot")
        with pytest.raises(twill_gpu.InputError, match="objective"):
            twill_gpu.gaus(None, random="nodes=10", objective="beauty")


class TestCache:
    def test_an_entry_is_kept_found_and_replaced_where_it_is_broken(self):
        twill_gpu.clear_cache()
        assert twill_gpu.cache_info().schedules == 0
        first = twill_gpu.schedule(ATTENTION, machine="h200")
        assert twill_gpu.cache_info().schedules == 1
        assert "cache" in json.loads(twill_gpu.schedule(ATTENTION, machine="h200").to_json())["seconds"]
        twill_gpu.schedule(ATTENTION, machine="h200", no_cache=True)
        twill_gpu.schedule(ATTENTION, machine="h200", compute_groups=1, time_limit=120)
        info = twill_gpu.cache_info()
        assert info.schedules == 2 and info.size > 1000
        for entry in (info.folder / "schedule").iterdir():
            entry.write_text(entry.read_text().replace('"cycle": 0', '"cycle": 1', 1))
        again = twill_gpu.schedule(ATTENTION, machine="h200")
        assert "cache" not in json.loads(again.to_json())["seconds"]
        assert again.operations == first.operations

    def test_writers_that_are_killed_leave_it_readable(self):
        twill_gpu.clear_cache()
        # Different work limits are different questions with the same answer.
        endless = (
            "import itertools, os, twill_gpu\n"
            "for k in itertools.count(): twill_gpu.schedule('gemm', work_limit=10**9 + k + 10**6 * (os.getpid() % 1000))"
        )
        for round_ in range(6):
            writers = [subprocess.Popen([sys.executable, "-c", endless]) for _ in range(2)]
            time.sleep(0.3 + 0.01 * round_)
            for writer in writers:
                writer.kill()
                writer.wait()
            info = twill_gpu.cache_info()
            assert twill_gpu.schedule("gemm", work_limit=10**9).ii == 512
        assert info.schedules > 0


def test_the_command_is_installed():
    twill = Path(sys.executable).with_name("twill")
    ran = subprocess.run([twill, "cache", "info"], capture_output=True, text=True, env=dict(os.environ))
    assert ran.returncode == 0 and "schedules" in ran.stdout
    ran = subprocess.run([twill, "schedule", "nothing"], capture_output=True, text=True)
    assert ran.returncode == 1 and "error:" in ran.stderr
