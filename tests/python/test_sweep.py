"""`twill_gpu.sweep` without a GPU: what is proved, what is kept, and what happens when something dies in the middle."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as xml
from pathlib import Path

import attention_forward as attention
import gemm_tma as gemm
import pytest
import twill_gpu
from twill_gpu.sweeping import flop, jobs, measuring, space
from twill_gpu.sweeping.command import main
from twill_gpu.sweeping.journal import Journal
from twill_gpu.sweeping.results import Row, Sweep

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SIGNATURE = (
    "a_desc=tensordesc<fp16[{BLOCK_M}, {BLOCK_K}]>,b_desc=tensordesc<fp16[{BLOCK_N}, {BLOCK_K}]>,"
    "c_desc=tensordesc<fp16[{BLOCK_M}, {BLOCK_N}]>,K=i32:16"
)
TILES = {"BLOCK_M": [64, 128, 256], "BLOCK_N": [64, 128, 256], "BLOCK_K": [64], "sub_tiles": [1, 2]}
GEMM = {"machine": "h200", "signature": SIGNATURE, "progress": False}
ALONE = {**GEMM, "workers": 1}
"""A worker that begins nothing that may not be needed."""
ATTENTION = {
    "machine": "h200",
    "signature": {
        **{name: "tensordesc<fp16[{BLOCK_M}, {HEAD_DIM}]>" for name in ("q_desc", "o_desc")},
        **{
            name: lambda tile: f"tensordesc<fp16[{tile['BLOCK_N']}, {tile['HEAD_DIM']}]>"
            for name in ("k_desc", "v_desc")
        },
        **{"lse_ptr": "*fp32:16", "softmax_scale": "fp32", "length": "i32:16"},
    },
    "constexprs": {"CAUSAL": False, "HEAD_DIM": 128},
    "progress": False,
}
HEADS = {"BLOCK_M": [64, 128], "BLOCK_N": [64, 128, 256], "sub_tiles": [1, 2]}


@pytest.fixture
def counted(monkeypatch):
    """How often each job was done, by step and key."""
    done, really = {}, jobs.run

    def run(step, question, progress=None):
        key = step, jobs.key(step, question)
        done[key] = done.get(key, 0) + 1
        return really(step, question, progress)

    monkeypatch.setattr(jobs, "run", run)
    return done


def plain(found):
    return json.loads(found.to_json())


def keys_of(path):
    lines = path.read_text().splitlines()
    assert json.loads(lines[0])["format"] == "twill-sweep-journal"
    return [json.loads(line)["key"] for line in lines[1:]]


class TestProof:
    def test_no_schedule_beats_its_bound_and_no_other_the_best(self):
        found = twill_gpu.sweep(attention.attention_forward, HEADS, solve=3, **ATTENTION)
        assert found.certain and not found.interrupted
        everything = twill_gpu.sweep(attention.attention_forward, HEADS, solve=99, **ATTENTION)
        rates = {row.name: row.flop_per_cycle for row in everything.rows if row.flop_per_cycle is not None}
        bounds = {row.name: row.bound for row in found.rows if row.bound is not None}
        assert len(rates) >= 6 and set(rates) <= set(bounds)
        assert all(rates[name] <= bounds[name] for name in rates)
        # What was left out could not have been among the best three.
        best = sorted(rates.values(), reverse=True)[:3]
        assert [row.flop_per_cycle for row in found.rows[:3]] == best
        unsolved = [row for row in found.rows if row.status == "bounded"]
        assert unsolved and all(row.bound <= best[-1] for row in unsolved)

    def test_a_bound_that_misleads_is_searched_past(self):
        # One sub-tile has the bound of two with keys in blocks of 128, but no schedule that achieves it.
        tiles = {"BLOCK_M": [128], "BLOCK_N": [128, 64], "sub_tiles": [1, 2]}
        found = twill_gpu.sweep(attention.attention_forward, tiles, solve=1, **ATTENTION)
        first = found.rows[0]
        assert (first.configuration["BLOCK_N"], first.configuration["sub_tiles"], first.ii) == (128, 2, 2048)
        misled = [row for row in found.rows if row.ii and row.flop_per_cycle < 4096]
        assert [row.configuration["sub_tiles"] for row in misled] == [1]

    def test_figures(self):
        (row,) = twill_gpu.sweep(EXAMPLES / "gemm_tma.ttir", machine="h200", progress=False).rows
        schedule = twill_gpu.schedule(EXAMPLES / "gemm_tma.ttir", machine="h200")
        assert (row.ii, row.status, row.stages, row.length) == (
            schedule.ii,
            "optimal",
            schedule.stages,
            schedule.length,
        )
        assert row.flop == 2 * 128 * 128 * 64 and row.flop_per_cycle == row.flop / 512 == row.bound
        assert row.teraflops == pytest.approx(4096 * 132 * 1830e6 / 1e12)
        assert (row.shared_bytes, row.registers) == (98304, 152)

    def test_ties_go_to_larger_tiles_and_less_shared_memory(self):
        found = twill_gpu.sweep(gemm.gemm_tma, TILES, solve=0, **GEMM)
        fitting = [row for row in found.rows if row.fits is not False]
        order = [(-row.bound, -row.flop, row.shared_bytes, row.index) for row in fitting]
        assert order == sorted(order) and len({row.bound for row in fitting}) > 2
        assert all(row.status == "bounded" for row in fitting)

    def test_programs_and_iterations_that_are_scheduled_as_one_count(self):
        space = {"programs_per_cta": [None, 2], "unroll": [1, 2]}
        found = twill_gpu.sweep(EXAMPLES / "gemm_tma.ttir", space, solve=4, machine="h200", progress=False)
        assert sorted(row.flop // 2**21 for row in found.rows) == [1, 2, 2, 4]
        assert all(row.flop_per_cycle <= row.bound <= 4096 for row in found.rows)

    def test_loops_count_by_weight(self):
        causal = EXAMPLES / "attention_forward_causal.ttir"
        ask = lambda counts: twill_gpu.sweep(
            causal, options={"trip_counts": counts}, machine="h200", progress=False
        ).rows[0]
        even, uneven = ask([1, 1]), ask([7, 1])
        assert (even.flop, uneven.flop) == (2 * 2**23, 8 * 2**23) and (even.ii, uneven.ii) == (2 * 2048, 8 * 2048)
        assert even.lower_bound == even.ii

    @pytest.mark.parametrize("name", ["attention_forward", "gemm_pointers", "attention_backward"])
    def test_flop_in_both_forms(self, name):
        custom, generic = EXAMPLES / f"{name}.ttir", EXAMPLES / "fixtures" / f"{name}_generic.ttir"
        assert flop.of_loops(custom.read_text()) == flop.of_loops(generic.read_text()) != [0]

    def test_flop_of_innermost_loops(self):
        assert flop.of_loops((EXAMPLES / "fixtures" / "nested_loops.ttir").read_text()) == [2 * 128 * 128 * 64]


class TestRejected:
    def test_each_with_its_reason(self):
        space_ = {"BLOCK_M": [100, 128, 256], "BLOCK_N": [256], "BLOCK_K": [64], "sub_tiles": [2, 4]}
        found = twill_gpu.sweep(gemm.gemm_tma, {**space_, "compute_groups": [2]}, solve=9, **GEMM)
        assert all(row.reason for row in found.rows if row.fits is False)
        by_tile = {(row.constexprs["BLOCK_M"], row.options["sub_tiles"]): row for row in found.rows}
        assert "power of 2" in by_tile[100, 2].reason and by_tile[100, 2].status == "rejected"
        assert "4 sub-tiles of 128 rows" in by_tile[128, 4].reason
        assert by_tile[256, 2].status in ("rejected", "infeasible") and by_tile[256, 2].fits is False
        assert by_tile[128, 2].fits is True and found.best is by_tile[128, 2]
        assert [row for row in found.rows if row.fits is False] == list(found.rows[1:])

    def test_no_loop(self):
        (row,) = twill_gpu.sweep(EXAMPLES / "fixtures" / "no_loop.ttir", progress=False).rows
        assert row.status == "rejected" and "no loop" in row.reason

    def test_a_filter(self):
        found = twill_gpu.sweep(
            gemm.gemm_tma, TILES, solve=0, where=lambda one: one["BLOCK_M"] == one["BLOCK_N"], **GEMM
        )
        assert len(found.rows) == 6

    @pytest.mark.parametrize(
        ("asked", "message"),
        [
            ({"space": {**TILES, "sub_tils": [1, 2]}}, "sub_tils is neither a parameter"),
            ({"space": {**TILES, "sub_tiles": "12"}}, "give a list of values"),
            ({"space": {**TILES, "BLOCK_K": []}}, "BLOCK_K: the list of values is empty"),
            ({"space": TILES, "constexprs": {"BLOCK_K": 64}}, "BLOCK_K has a fixed value"),
            ({"space": {"BLOCK_M": [128]}}, "there is no constexpr"),
            ({"space": TILES, "where": lambda one: False}, "no configuration"),
            ({"space": TILES, "signature": None}, "needs signature"),
            ({"space": TILES, "workers": 0}, "workers at least 1"),
            ({"space": TILES, "measure": 1}, "arguments="),
            ({"space": TILES, "signature": "a_desc"}, "NAME=TYPE"),
            ({"space": TILES, "options": {"ring_depth": 99}}, "ring-depth"),
            ({"what": [], "signature": None, "space": {}}, "nothing to sweep"),
            ({"what": "nowhere.ttir", "signature": None, "space": {}}, "cannot read nowhere.ttir"),
        ],
    )
    def test_what_makes_no_sense_is_said(self, asked, message):
        with pytest.raises(twill_gpu.InputError, match=message):
            twill_gpu.sweep(**{"what": gemm.gemm_tma, **GEMM, **asked})

    def test_each_tile_shape_is_printed_once(self, monkeypatch):
        from twill_gpu import front_end

        printed, really = [], front_end.ttir_of
        monkeypatch.setattr(front_end, "ttir_of", lambda *asked: printed.append(dict(asked[2])) or really(*asked))
        twill_gpu.sweep(gemm.gemm_tma, {**TILES, "compute_groups": [1, 2]}, solve=0, **GEMM)
        assert len(printed) == 9


class TestResumed:
    def test_nothing_is_done_twice(self, tmp_path, counted):
        state = tmp_path / "sweep.jsonl"
        first = twill_gpu.sweep(gemm.gemm_tma, TILES, solve=2, state=state, **ALONE)
        assert set(counted.values()) == {1}
        before = dict(counted)
        again = twill_gpu.sweep(gemm.gemm_tma, TILES, solve=2, state=state, **ALONE)
        assert counted == before and plain(again) == plain(first)
        more = twill_gpu.sweep(gemm.gemm_tma, TILES, solve=4, state=state, **ALONE)
        assert set(counted.values()) == {1} and len(counted) > len(before)
        assert sum(row.ii is not None for row in more.rows) >= 4
        assert sorted(keys_of(state)) == sorted(key for _, key in counted)

    def test_other_questions_are_others(self, tmp_path, counted):
        state = tmp_path / "sweep.jsonl"
        ask = lambda **more: twill_gpu.sweep(EXAMPLES / "gemm_tma.ttir", state=state, progress=False, **more)
        ask(machine="h200"), ask(machine="h100"), ask(machine="h200", time_limit=7), ask(machine="h200")
        assert sorted(step for step, _ in counted) == ["fit", "fit", "solve", "solve", "solve"]

    @pytest.mark.parametrize("cut", [1, 7, 40])
    def test_a_torn_line_is_cut_off(self, tmp_path, counted, cut):
        state = tmp_path / "sweep.jsonl"
        first = twill_gpu.sweep(gemm.gemm_tma, TILES, solve=2, state=state, **ALONE)
        whole = state.read_bytes()
        state.write_bytes(whole[:-cut])
        counted.clear()
        assert plain(twill_gpu.sweep(gemm.gemm_tma, TILES, solve=2, state=state, **ALONE)) == plain(first)
        assert list(counted.values()) == [1]
        assert len(keys_of(state)) == len(set(keys_of(state))) == len(whole.splitlines()) - 1

    def test_a_torn_header(self, tmp_path):
        state = tmp_path / "sweep.jsonl"
        state.write_bytes(b'{"format": "twill-sw')
        Journal(state).close()
        assert keys_of(state) == []

    @pytest.mark.parametrize("text", ["precious\n", "precious", '{"format": "twill-sweep-journal", "version": 2}\n'])
    def test_a_file_that_is_no_journal_is_left_alone(self, tmp_path, text):
        state = tmp_path / "thesis.txt"
        state.write_text(text)
        with pytest.raises(twill_gpu.InputError, match="no journal of a sweep"):
            Journal(state)
        assert state.read_text() == text

    def test_a_line_in_the_middle_that_cannot_be_read(self, tmp_path):
        state = tmp_path / "sweep.jsonl"
        twill_gpu.sweep(gemm.gemm_tma, TILES, solve=1, state=state, **GEMM)
        lines = state.read_text().splitlines(keepends=True)
        state.write_text("".join([*lines[:2], "{torn\n", *lines[3:]]))
        with pytest.raises(twill_gpu.InputError, match="line 3"):
            Journal(state)

    def test_two_at_once(self, tmp_path):
        journal = Journal(tmp_path / "sweep.jsonl")
        with pytest.raises(twill_gpu.InputError, match="in use"):
            Journal(tmp_path / "sweep.jsonl")
        journal.close()
        Journal(tmp_path / "sweep.jsonl").close()

    def test_what_failed_is_tried_again(self, tmp_path, monkeypatch):
        state, really = tmp_path / "sweep.jsonl", jobs.run

        def broken(step, question, progress=None):
            if step == jobs.SOLVE:
                raise RuntimeError("the machine is on fire")
            return really(step, question, progress)

        monkeypatch.setattr(jobs, "run", broken)
        ask = lambda: twill_gpu.sweep(EXAMPLES / "gemm_tma.ttir", state=state, machine="h200", progress=False)
        (row,) = ask().rows
        assert row.ii is None and "on fire" in row.reason
        monkeypatch.setattr(jobs, "run", really)
        assert ask().rows[0].ii == 512


class TestInterrupted:
    def test_what_is_there_is_given_back(self, tmp_path, counted):
        def press(text):
            if text.startswith("schedules: 1 solved"):
                raise KeyboardInterrupt

        state = tmp_path / "sweep.jsonl"
        asked = {**GEMM, "progress": press, "workers": 1, "solve": 4, "state": state}
        found = twill_gpu.sweep(gemm.gemm_tma, TILES, **asked)
        assert found.interrupted and not found.certain
        assert sum(row.ii is not None for row in found.rows) == 1 and "Interrupted" in found.table()
        whole = twill_gpu.sweep(gemm.gemm_tma, TILES, **{**asked, "progress": False})
        assert not whole.interrupted and whole.certain
        # The one that was under way was not done.
        assert len(keys_of(state)) == len(set(keys_of(state)))
        assert sum(counted.values()) <= len(counted) + 1

    def test_in_the_midst_of_bounds(self, tmp_path):
        def press(text):
            if text.startswith("bounds: 3 "):
                raise KeyboardInterrupt

        found = twill_gpu.sweep(gemm.gemm_tma, TILES, **{**GEMM, "progress": press, "state": tmp_path / "state"})
        assert found.interrupted and found.best is None
        assert sum(row.fits is None and row.status == "failed" for row in found.rows) == 18 - len(
            keys_of(tmp_path / "state")
        )

    def test_ctrl_c_in_the_command(self, tmp_path):
        state, output = tmp_path / "state", tmp_path / "sweep.json"
        # Three compute groups of 256 rows take far longer than this test waits.
        words = [EXAMPLES / "attention_forward_m256.ttir", EXAMPLES / "gemm_tma.ttir", "--machine=h200", "--workers=2"]
        words += [f"--state={state}", "--format=json", "-o", output, "--time-limit=500"]
        environment = {**os.environ, "TWILL_CACHE": "off"}
        process = subprocess.Popen([sys.executable, "-m", "twill_gpu.sweeping", *words], env=environment)
        end = time.monotonic() + 60
        while time.monotonic() < end and not (state.exists() and len(state.read_text().splitlines()) >= 4):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 3
        found = json.loads(output.read_text())
        assert found["interrupted"] and not found["certain"]
        by_input = {Path(row["configuration"]["input"]).stem: row for row in found["rows"]}
        assert by_input["gemm_tma"]["ii"] == 512 and "ii" not in by_input["attention_forward_m256"]


class TestWorkers:
    def test_any_number_finds_the_same(self, monkeypatch):
        monkeypatch.setenv("TWILL_CACHE", "off")
        ask = lambda workers: plain(
            twill_gpu.sweep(attention.attention_forward, HEADS, solve=2, workers=workers, **ATTENTION)
        )
        one = ask(1)
        assert ask(3) == one and ask(16) == one

    def test_they_work_at_the_same_time(self, monkeypatch):
        meet = threading.Barrier(3, timeout=30)
        monkeypatch.setattr(
            jobs,
            "run",
            lambda step, question, progress: (
                meet.wait() and {"fits": False, "reason": "met"} or {"fits": False, "reason": "met"}
            ),
        )
        found = twill_gpu.sweep(EXAMPLES / "gemm_tma.ttir", {"sub_tiles": [1, 2, None]}, workers=3, progress=False)
        assert [row.reason for row in found.rows] == ["met"] * 3

    def test_ray_is_named_where_it_is_missing(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "ray", None)
        with pytest.raises(twill_gpu.InputError, match="pip install 'ray"):
            twill_gpu.sweep(EXAMPLES / "gemm_tma.ttir", ray="local", progress=False)

    def test_ray_is_not_imported_unless_it_is_asked_for(self):
        program = f"import sys, twill_gpu; twill_gpu.sweep({str(EXAMPLES / 'gemm_tma.ttir')!r}, progress=False); print({{'ray', 'torch', 'triton'}} & set(sys.modules))"
        assert (
            subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
            == "set()\n"
        )


class TestShown:
    HOSTILE = {"a<b>&\"'": "</title><script>alert(1)</script>", "line\nbreak\x1b[31m": "]]>\x00"}

    def hostile(self):
        known = dict(constexprs={}, options={}, flop=2, lower_bound=1, bound=2.0, bound_teraflops=3.0)
        rows = [
            Row(
                0,
                self.HOSTILE,
                status="optimal",
                fits=True,
                shared_bytes=7,
                ii=1,
                flop_per_cycle=2.0,
                teraflops=3.0,
                **known,
            ),
            Row(1, self.HOSTILE, status="bounded", fits=None, shared_bytes=9, **known),
            Row(2, self.HOSTILE, status="rejected", fits=False, reason="<&>\x1b", constexprs={}, options={}),
        ]
        return Sweep(rows, kernel="<kernel>", machine="&machine", solve=1)

    def test_hostile_names(self):
        found = self.hostile()
        root = xml.fromstring(found.svg())
        assert not [part for part in root.iter() if "script" in part.tag]
        assert any("<script>" in (part.text or "") for part in root.iter())
        assert "<script>" not in found._repr_html_()
        assert "\x1b" not in found.table() and "\x00" not in found.table()
        assert len(found.table().splitlines()) == 12
        assert json.loads(found.to_json())["rows"][0]["configuration"] == self.HOSTILE

    def test_picture(self):
        found = twill_gpu.sweep(gemm.gemm_tma, TILES, solve=3, **GEMM)
        root = xml.fromstring(found.svg())
        name = "{http://www.w3.org/2000/svg}"
        count = lambda tag, kind: (
            sum(part.get("class") == kind for part in root.iter(name + tag)) - 1
        )  # One is the legend's.
        solved = [row for row in found.rows if row.ii is not None]
        assert count("circle", "solved") == len(solved) >= 3
        assert count("path", "rejected") == sum(row.fits is False for row in found.rows) > 0
        assert count("circle", "bounded") == len(found.rows) - len(solved) - count("path", "rejected") > 0
        assert "prefers-color-scheme: dark" in found.svg()
        for nothing in (Sweep([], kernel="k", machine="m", solve=1), self.hostile()):
            xml.fromstring(nothing.svg())
            assert nothing.table()

    def test_front(self):
        def row(index, rate, shared, length):
            known = dict(configuration={}, constexprs={}, options={}, status="optimal", fits=True)
            return Row(index, flop_per_cycle=rate, bound=10.0, shared_bytes=shared, length=length, **known)

        rows = [row(0, 5.0, 50, 9), row(1, 5.0, 60, 3), row(2, 4.0, 20, 9), row(3, 3.0, 30, 9), row(4, 5.0, 50, 9)]
        found = Sweep(rows, kernel="k", machine="m", solve=1)
        assert [one.index for one in found.pareto()] == [2, 0, 4]
        assert [one.index for one in found.pareto(length=True)] == [2, 0, 4, 1]
        assert [one.index for one in found.pareto("bound")] == [2]
        with pytest.raises(ValueError, match="achieved"):
            found.pareto("speed")

    def test_saved(self, tmp_path):
        found = twill_gpu.sweep(EXAMPLES / "gemm_tma.ttir", machine="h200", progress=False)
        found.save(tmp_path / "new" / "folder")
        assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == [
            "sweep.json",
            "sweep.svg",
            "sweep.txt",
        ]
        assert "I = " not in repr(found) and "4096 FLOP" in repr(found)


class TestCommand:
    def words(self, *more):
        return [f"{EXAMPLES / 'gemm_tma.py'}:gemm_tma", f"--signature={SIGNATURE}", "--machine=h200", "--quiet", *more]

    def test_the_same_as_the_function(self, tmp_path):
        words = self.words("--constexpr=BLOCK_M=64,128,256", "--constexpr=BLOCK_N=64,128,256", "--constexpr=BLOCK_K=64")
        output = tmp_path / "out.json"
        assert main([*words, "--option=sub-tiles=1,2", "--solve=2", "--format=json", "-o", str(output)]) == 0
        expected = plain(twill_gpu.sweep(gemm.gemm_tma, TILES, solve=2, **GEMM))
        assert json.loads(output.read_text()) == expected

    def test_text_and_picture(self, capsys):
        files = [str(EXAMPLES / f"{name}.ttir") for name in ("gemm_tma", "gemm_tma_n256")]
        assert main([*files, "--machine=h200", "--set=time_limit=9"]) == 0
        told = capsys.readouterr()
        assert "Best: input=" in told.out and "bounds: 2 of 2" in told.err
        assert main([*files, "--format=svg", "--quiet"]) == 0
        told = capsys.readouterr()
        assert xml.fromstring(told.out).tag.endswith("svg") and told.err == ""

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["nowhere.py:kernel"], "no such file"),
            ([f"{EXAMPLES / 'gemm_tma.py'}:nothing"], "has no nothing"),
            (["nowhere.ttir"], "cannot read"),
            ([str(EXAMPLES / "gemm_tma.ttir"), "--constexpr=BLOCK_M=1"], "for Triton functions"),
            ([str(EXAMPLES / "gemm_tma.ttir"), "--option=sub_tiles"], "NAME=VALUE"),
            ([str(EXAMPLES / "gemm_tma.ttir"), "-o", "/nowhere/at/all"], "cannot write"),
        ],
    )
    def test_errors(self, words, message, capsys):
        assert main([*words, "--quiet"]) == 1
        assert message in capsys.readouterr().err

    def test_unknown_words(self, capsys):
        with pytest.raises(SystemExit) as ended:
            main(["x.ttir", "--nonsense"])
        assert ended.value.code == 1 and "--nonsense" in capsys.readouterr().err

    def test_signature(self):
        assert space.signature_of("a=tensordesc<fp16[{M}, {K}]>, K=i32:16;p=*fp16") == {
            **{"a": "tensordesc<fp16[{M}, {K}]>", "K": "i32:16", "p": "*fp16"}
        }


class TestMeasured:
    """With a GPU that is not there: what is compiled and launched is real up to the launch."""

    ARGUMENTS = {"measure": 2, "solve": 2, **GEMM}

    @pytest.fixture
    def clock(self, monkeypatch, fake_gpu):
        """Launches of 128 columns take twice as long as others."""
        torch = sys.modules["torch"]
        torch.cuda.current_device = lambda: 0
        torch.cuda.is_available = lambda: True
        launched = fake_gpu.launched

        class Event:
            def __init__(self, enable_timing):
                pass

            def record(self):
                self.at = len(launched)

            def synchronize(self):
                pass

            def elapsed_time(self, other):
                return sum(1.0 if max(one.grid) == 4 else 2.0 for one in launched[self.at : other.at])

        torch.cuda.Event = Event
        return launched

    def arguments(self, tensor):
        from triton.tools.tensor_descriptor import TensorDescriptor

        def make(tile):
            matrices = (
                tensor([512, 256], address=1 << 20),
                tensor([512, 256], address=2 << 20),
                tensor([512, 512], address=3 << 20),
            )
            m, n, k = (tile[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
            blocks = [m, k], [n, k], [m, n]
            return [*map(TensorDescriptor.from_tensor, matrices, blocks), 256], (512 // m, 512 // n)

        return make

    def test_the_fastest_is_the_best(self, clock, tensor, tmp_path):
        tiles = {"BLOCK_M": [128], "BLOCK_N": [128, 256], "BLOCK_K": [64]}
        asked = {**self.ARGUMENTS, "arguments": self.arguments(tensor), "state": tmp_path / "state"}
        found = twill_gpu.sweep(gemm.gemm_tma, tiles, **asked)
        assert all(row.milliseconds is not None for row in found.rows) and found.best.milliseconds == min(
            row.milliseconds for row in found.rows
        )
        launches = len(clock)
        assert launches >= 2 * measuring.ROUNDS
        again = twill_gpu.sweep(gemm.gemm_tma, tiles, **asked)
        assert len(clock) == launches and plain(again) == plain(found)

    def test_a_wrong_result_is_not_timed(self, clock, tensor):
        class Values(list):
            double = abs = max = lambda self: self

            def __sub__(self, other):
                return Values([abs(self[0] - other[0])])

            def item(self):
                return self[0]

        reference = lambda a, b, c, k: (Values([1.0]), Values([1.0 if c.block_shape[1] == 128 else 1.5]))
        tiles = {"BLOCK_M": [128], "BLOCK_N": [128, 256], "BLOCK_K": [64]}
        found = twill_gpu.sweep(
            gemm.gemm_tma, tiles, arguments=self.arguments(tensor), reference=reference, **self.ARGUMENTS
        )
        by_columns = {row.constexprs["BLOCK_N"]: row for row in found.rows}
        assert by_columns[128].error == 0 and by_columns[128].milliseconds is not None
        assert by_columns[256].milliseconds is None and "wrong" in by_columns[256].reason
        assert found.best is by_columns[128]


@pytest.fixture
def cluster(monkeypatch):
    """A Ray cluster of two workers beside a head that takes no jobs."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_DEDUP_LOGS", "0")
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    workers = [made.add_node(num_cpus=1) for _ in range(2)]
    made.wait_for_nodes()
    try:
        yield made, workers
    finally:
        ray.shutdown()
        made.shutdown()


class TestRay:
    def test_a_worker_is_killed(self, cluster, tmp_path):
        made, workers = cluster
        state, heard = tmp_path / "sweep.jsonl", []
        space_ = {**HEADS, "compute_groups": [1, 2], "registers_per_thread": [None, 168, 232]}

        def kill(text):
            heard.append(text)
            if text.startswith("bounds: 20 "):
                made.remove_node(workers[1], allow_graceful=False)

        asked = {**ATTENTION, "progress": kill, "solve": 4}
        found = twill_gpu.sweep(attention.attention_forward, space_, ray=made.address, state=state, **asked)
        assert any(text.startswith("bounds: 20 ") for text in heard)
        assert not found.interrupted and found.certain
        assert all(row.status != "failed" for row in found.rows)
        keys = keys_of(state)
        assert len(keys) == len(set(keys)) >= 36
        # Here, without Ray, all of it is the same.
        asked |= {"progress": False, "workers": 1, "state": tmp_path / "alone.jsonl"}
        alone = twill_gpu.sweep(attention.attention_forward, space_, **asked)
        assert plain(found) == plain(alone)
        assert set(keys) >= set(keys_of(tmp_path / "alone.jsonl"))

    def test_no_cluster_there(self):
        pytest.importorskip("ray")
        with pytest.raises(twill_gpu.InputError, match="cannot reach"):
            twill_gpu.sweep(EXAMPLES / "gemm_tma.ttir", ray="auto", progress=False)
