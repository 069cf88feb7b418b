"""`twill_gpu.sweep` without a GPU: proofs, rejections, output, and the command."""

import json
import xml.etree.ElementTree as xml

import attention_forward as attention
import gemm_tma as gemm
import pytest
import twill_gpu
from sweeps import ATTENTION, EXAMPLES, GEMM, HEADS, SIGNATURE, TILES, plain
from twill_gpu.sweeping import space
from twill_gpu.sweeping.command import main
from twill_gpu.sweeping.results import Row, Sweep


class TestProof:
    def test_no_schedule_beats_its_bound_and_no_other_the_best(self):
        found = twill_gpu.sweep(attention.attention_forward, HEADS, solve=3, **ATTENTION)
        assert found.certain and not found.interrupted
        everything = twill_gpu.sweep(attention.attention_forward, HEADS, solve=99, **ATTENTION)
        rates = {row.name: row.flop_per_cycle for row in everything.rows if row.flop_per_cycle is not None}
        bounds = {row.name: row.bound for row in found.rows if row.bound is not None}
        assert len(rates) >= 6 and set(rates) <= set(bounds)
        assert all(rates[name] <= bounds[name] for name in rates)
        # Configurations left out could not have been among the best three.
        best = sorted(rates.values(), reverse=True)[:3]
        assert sorted((row.flop_per_cycle for row in found.rows if row.flop_per_cycle is not None), reverse=True)[:3] == best
        unsolved = [row for row in found.rows if row.status == "bounded"]
        assert unsolved and all(row.bound <= best[-1] for row in unsolved)

    def test_the_best_of_a_kind_is_found_with_one_solution(self):
        # One sub-tile has more rows for a group than its registers hold at two's interval.
        tiles = {"BLOCK_M": [128], "BLOCK_N": [128, 64], "sub_tiles": [1, 2]}
        found = twill_gpu.sweep(attention.attention_forward, tiles, solve=1, **ATTENTION)
        first = found.rows[0]
        assert (first.configuration["BLOCK_N"], first.configuration["sub_tiles"], first.ii) == (128, 2, 2048)
        assert found.certain and all(row.bound <= first.flop_per_cycle for row in found.rows[1:] if row.status == "bounded")

    def test_figures(self):
        (row,) = twill_gpu.sweep(EXAMPLES / "gemm_tma.ttir", machine="h200", progress=False).rows
        schedule = twill_gpu.schedule(EXAMPLES / "gemm_tma.ttir", machine="h200", warp_assignment="by-sub-tile")
        assert (row.ii, row.status, row.stages, row.length) == (
            schedule.ii,
            "optimal",
            schedule.stages,
            schedule.length,
        )
        assert row.flop == 2 * 128 * 128 * 64 and row.flop_per_cycle == row.flop / 512 == row.bound
        assert row.teraflops == pytest.approx(4096 * 132 * 1830e6 / 1e12)
        assert row.shared_bytes >= 98304 and row.registers == schedule.groups[-1].registers_per_thread

    def test_ties_go_to_larger_tiles_and_less_shared_memory(self):
        found = twill_gpu.sweep(gemm.gemm_tma, TILES, solve=0, **GEMM)
        fitting = [row for row in found.rows if row.fits is not False]
        order = [(-row.bound, -row.flop, row.shared_bytes, row.index) for row in fitting]
        assert order == sorted(order) and len({row.bound for row in fitting}) > 2
        assert all(row.status == "bounded" for row in fitting)

    def test_programs_that_share_a_cta_count(self):
        space = {"cta_coarsening": [None, 2], "unroll": [1, 2]}
        found = twill_gpu.sweep(EXAMPLES / "gemm_tma.ttir", space, solve=4, machine="h200", progress=False)
        fitting = [row for row in found.rows if row.fits]
        assert sorted(row.flop // 2**21 for row in fitting) == [1, 2]
        assert all(row.flop_per_cycle <= row.bound <= 4096 for row in fitting)
        # No code is generated for iterations that are scheduled as one.
        assert ["leave --unroll out" in row.reason for row in found.rows if row.fits is False] == [True, True]

    def test_loops_count_by_weight(self):
        causal = EXAMPLES / "attention_forward_causal.ttir"
        ask = lambda counts: twill_gpu.sweep(
            causal, options={"trip_counts": counts, "work_limit": 1_000_000}, machine="h200", progress=False
        ).rows[0]
        even, uneven = ask([1, 1]), ask([7, 1])
        assert (even.flop, uneven.flop) == (2 * 2**23, 8 * 2**23) and (even.ii, uneven.ii) == (2 * 2048, 8 * 2048)
        assert even.lower_bound == even.ii


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
        ("given", "message"),
        [
            ({"space": {**TILES, "sub_tils": [1, 2]}}, "'sub_tils' is neither .*; did you mean 'sub_tiles'?"),
            ({"space": {**TILES, "BLOCK_L": [1, 2]}}, "'BLOCK_L' is neither .*; did you mean 'BLOCK_"),
            ({"space": {**TILES, "sub_tiles": "12"}}, "give a list of values"),
            ({"space": {**TILES, "BLOCK_K": []}}, "BLOCK_K: the list of values is empty"),
            ({"space": TILES, "constexprs": {"BLOCK_K": 64}}, "BLOCK_K has a fixed value"),
            ({"space": {"BLOCK_M": [128]}}, "there is no constexpr"),
            ({"space": TILES, "where": lambda one: False}, "no configuration"),
            ({"space": TILES, "signature": None}, "needs signature"),
            ({"space": TILES, "workers": 0}, "workers at least 1"),
            ({"space": TILES, "measure": 1}, "arguments="),
            ({"space": TILES, "signature": "a_desc"}, "NAME=TYPE"),
            ({"space": TILES, "options": {"ring_depth": 99}}, "ring_depth must be from 1 to 8, not 99"),
            ({"what": [], "signature": None, "space": {}}, "nothing to sweep"),
            ({"what": "nowhere.ttir", "signature": None, "space": {}}, "cannot read nowhere.ttir"),
        ],
    )
    def test_what_makes_no_sense_is_said(self, given, message):
        with pytest.raises((twill_gpu.InputError, twill_gpu.OptionError), match=message):
            twill_gpu.sweep(**{"what": gemm.gemm_tma, **GEMM, **given})

    def test_each_tile_shape_is_printed_once(self, monkeypatch):
        from twill_gpu import front_end

        printed, really = [], front_end.ttir_of
        monkeypatch.setattr(front_end, "ttir_of", lambda *given: printed.append(dict(given[2])) or really(*given))
        twill_gpu.sweep(gemm.gemm_tma, {**TILES, "compute_groups": [1, 2]}, solve=0, **GEMM)
        assert len(printed) == 9


class TestOrder:
    def test_what_the_model_cannot_tell_apart_is_ranked_by_simulation(self):
        found = twill_gpu.sweep(attention.attention_forward, HEADS, solve=99, **ATTENTION)
        solved = [row for row in found.rows if row.ii is not None]
        rates = [row.flop / row.simulated for row in solved]
        assert len(rates) > 3 and rates == sorted(rates, reverse=True)
        best = max(row.flop_per_cycle for row in solved)
        equal = [row for row in solved if row.flop_per_cycle == best]
        assert len({row.flop / row.simulated for row in equal}) > 1, "the model has them all at the data sheet's rate"
        assert found.best is solved[0]
        assert "simulated" in found.table(width=200)


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
        assert len(found.table(width=1000).splitlines()) == 12
        assert json.loads(found.to_json())["rows"][0]["configuration"] == self.HOSTILE

    def test_tables_keep_to_the_width(self):
        known = dict(constexprs={}, options={}, fits=True, bound=4096.0, bound_teraflops=989.4, lower_bound=512)
        rows = [
            Row(
                index,
                {"input": f"examples/gemm_tma_{name}.ttir", "sub_tiles": index},
                status="optimal",
                ii=12345,
                stages=2,
                length=999,
                flop_per_cycle=14096.0,
                teraflops=989.4,
                shared_bytes=98536,
                registers=168,
                **known,
            )
            for index, name in enumerate(["m256", "n256"])
        ]
        found = Sweep(rows, kernel="gemm_tma", machine="h200", solve=2)
        for width in (40, 60, 80, 100, 160):
            text = found.table(width=width)
            assert all(len(line) <= width for line in text.splitlines()), text
            shown = [line for line in text.splitlines() if line.rstrip().endswith("*") or "989.4" in line]
            assert width < 60 or len(set(shown)) == len(rows), text
            assert ("not shown:" in text) == (width < 160), text
        widest = found.table(width=160)
        assert all(number in widest for number in ("12,345", "14,096.0", "98,536", " 512 ", " 999 ")), widest
        # Names are whole before anything else is shown.
        assert "examples/gemm_tma_m256.ttir" in found.table(width=60)

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
            ([str(EXAMPLES / "gemm_tma.ttir"), "--programs=132"], "go together"),
            ([str(EXAMPLES / "gemm_tma.ttir"), "--rested"], "needs --programs"),
        ],
    )
    def test_errors(self, words, message, capsys):
        assert main([*words, "--quiet"]) == 1
        assert message in capsys.readouterr().err

    def test_launches_after_a_rest(self, capsys):
        given = [str(EXAMPLES / "gemm_tma.ttir"), "--machine=h200", "--set=emit=cuda", "--set=no_assemble=on", "--quiet"]
        launch, found = ["--programs=2048", "--trips=128", "--format=json"], []
        for more in ([], ["--rested"]):
            assert main([*given, *launch, *more]) == 0
            found.append(json.loads(capsys.readouterr().out)["rows"][0]["predicted_milliseconds"])
        # At the limit of 700 W instead of 930: the clock goes with the root.
        assert found[0] / found[1] == pytest.approx((930 / 700) ** 0.5, rel=0.01)

    def test_unknown_words(self, capsys):
        with pytest.raises(SystemExit) as ended:
            main(["x.ttir", "--nonsense"])
        assert ended.value.code == 1 and "--nonsense" in capsys.readouterr().err

    def test_signature(self):
        assert space.signature_of("a=tensordesc<fp16[{M}, {K}]>, K=i32:16;p=*fp16") == {
            **{"a": "tensordesc<fp16[{M}, {K}]>", "K": "i32:16", "p": "*fp16"}
        }
