"""Tests of the GPU benchmark that need no GPU: python -m unittest bench.gpu.test_gpu

The references and the checks' traps are tested where torch is installed.
"""

import json
import math
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from bench.common import ROOT
from bench.gpu import kernel_folders, ncu, report, timing
from bench.gpu.compiling import sources
from bench.gpu.rows import CUBLAS, ROWS, STOCK, check_shapes

try:
    import torch
except ImportError:
    torch = None

ROW = {row.name: row for row in ROWS}


class Kernels(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = Path(holder.name)

    def write(self, name: str, answer: object) -> Path:
        folder = self.root / name
        folder.mkdir()
        (folder / "kernel.json").write_text(json.dumps(answer), encoding="utf-8")
        (folder / "launch.py").write_text("", encoding="utf-8")
        return folder

    def serving(self, kernel: kernel_folders.Generated) -> list[str]:
        return [row.name for row in ROWS if kernel.serves(row)]

    def test_constants_that_are_given_decide(self):
        constants = dict(BLOCK_M=64, BLOCK_N=128, HEAD_DIM=64, CAUSAL=True)
        kernel = kernel_folders.read(self.write("any", {"name": "attention_forward", "constants": constants}))
        self.assertEqual(kernel.constants, constants)
        self.assertEqual(self.serving(kernel), ["forward-causal-d64-16k"])

    def test_tiles_of_descriptors_and_two_loops_stand_in_for_constants(self):
        tile = lambda name, *shape: {
            "name": name,
            "kind": "descriptor",
            "blocks": [{"argument": "x", "shape": list(shape)}],
        }
        folder = self.write(
            "any", {"name": "attention_forward", "parameters": [tile("q_desc", 64, 64), tile("k_desc", 64, 64)]}
        )
        (folder / "schedule.json").write_text('{"loops": [{}, {}]}', encoding="utf-8")
        # Two warp groups load 64 of the 128 queries each.
        self.assertEqual(kernel_folders.read(folder).constants, dict(BLOCK_M=128, BLOCK_N=64, HEAD_DIM=64, CAUSAL=True))

    def test_the_name_stands_in_for_all(self):
        kernel = kernel_folders.read(self.write("gemm_tma_m256_n64", {"name": "gemm_tma"}))
        self.assertEqual(kernel.constants, dict(BLOCK_M=256, BLOCK_N=64, BLOCK_K=64))
        self.assertEqual(self.serving(kernel), ["gemm-8192", "gemm-4096", "gemm-2048", "gemm-16384x1024x4096"])
        causal = kernel_folders.read(self.write("attention_backward_causal", {"name": "attention_backward_causal"}))
        self.assertEqual(self.serving(causal), ["backward-causal-d128-16k", "backward-causal-d128-4k"])

    def test_every_row_has_an_example(self):
        stems = {path.stem for path in sources({row.example for row in ROWS})}
        for row in ROWS:
            self.assertTrue(any(stem.startswith(row.example) for stem in stems), row.name)
        self.assertNotIn("attention_forward_m256", stems)
        self.assertEqual({path.stem for path in sources({"attention_backward"})}, {"attention_backward", "attention_backward_d64"})

    def test_naive_schedules_are_peers(self):
        self.assertTrue(kernel_folders.read(self.write("swiglu.no-swp", {"name": "swiglu"})).naive)
        self.assertFalse(kernel_folders.read(self.write("swiglu", {"name": "swiglu"})).naive)

    def test_folders_without_kernels_are_named(self):
        for case, answer in enumerate(
            ({"name": "softmax"}, ["swiglu"], {"name": "swiglu", "parameters": {"x_desc": 1}})
        ):
            with self.subTest(answer), self.assertRaisesRegex(kernel_folders.Unreadable, "kernel.json"):
                kernel_folders.read(self.write(f"case{case}", answer))
        with self.assertRaisesRegex(kernel_folders.Unreadable, "no such folder"):
            kernel_folders.find([self.root / "missing"])
        (self.root / "empty").mkdir()
        with self.assertRaisesRegex(kernel_folders.Unreadable, "no launch.py"):
            kernel_folders.find([self.root / "empty"])

    def test_two_kernels_of_one_name_are_refused(self):
        self.write("swiglu", {"name": "swiglu"})
        with self.assertRaisesRegex(kernel_folders.Unreadable, "rename"):
            kernel_folders.find([self.root, self.root / "swiglu"])

    def test_checks_have_loops_of_one_two_and_three_trips(self):
        attention = check_shapes("attention_forward", dict(BLOCK_M=64, BLOCK_N=128, HEAD_DIM=64, CAUSAL=False))
        self.assertLessEqual({1, 2, 3, 5, 10}, {shape["length"] // 128 for shape in attention})
        product = check_shapes("gemm_tma", dict(BLOCK_M=128, BLOCK_N=256, BLOCK_K=64))
        self.assertLessEqual({1, 2, 3, 7, 16}, {shape["K"] // 64 for shape in product})
        self.assertTrue(all(shape["M"] % 128 == shape["N"] % 256 == 0 for shape in product))

    def test_checks_of_clusters_have_whole_ones(self):
        for shape in check_shapes("attention_backward", dict(BLOCK_M=64, BLOCK_N=128, HEAD_DIM=64), 2):
            self.assertEqual(shape["length"] // 128 % 2, 0)
        for example in ("gemm_tma", "gemm_pointers"):
            shapes = check_shapes(example, dict(BLOCK_M=128, BLOCK_N=256, BLOCK_K=64), 2)
            self.assertTrue(shapes)
            self.assertTrue(all(-(-shape["M"] // 128) % 2 == 0 for shape in shapes))

    def test_work_is_counted_as_usual(self):
        self.assertEqual(ROW["forward-d128-16k"].flops(), 4 * 16 * 16384**2 * 128)
        self.assertEqual(ROW["forward-causal-d128-16k"].flops(), 2 * 16 * 16384**2 * 128)
        self.assertEqual(ROW["backward-d64-16k"].flops(), 10 * 32 * 16384**2 * 64)
        self.assertEqual(ROW["forward-d192-16k"].flops(), 2 * 16 * 16384**2 * (192 + 128))
        self.assertEqual(ROW["backward-causal-d128-16k"].flops(), 5 * 16 * 16384**2 * 128)
        self.assertEqual(ROW["gemm-4096"].flops(), 2 * 4096**3)


class FakeClock:
    """A GPU whose launches take what they say; a tenth longer once it has been busy for 20 ms without a rest."""

    def __init__(self):
        self.now, self.busy = 0.0, 0.0

    def launch(self, ms: float):
        def run():
            taken = ms * (1.1 if self.busy > 20 else 1.0)
            self.now += taken
            self.busy += taken

        return run

    def event(self) -> float:
        return self.now

    def between(self, first: float, last: float) -> float:
        return last - first

    def finish(self) -> None:
        pass

    def pause(self) -> None:
        self.now += 0.5

    def rest(self, seconds: float) -> None:
        self.busy = 0.0


class Timing(unittest.TestCase):
    def test_sustained_and_burst_times(self):
        clock = FakeClock()
        times = timing.measure({"slow": clock.launch(3.0), "quick": clock.launch(0.2)}, clock)
        for name, ms in (("slow", 3.0), ("quick", 0.2)):
            summary = times[name].summary()
            self.assertAlmostEqual(summary["ms"], ms * 1.1)
            self.assertAlmostEqual(summary["burst_ms"], ms)
            self.assertEqual(len(summary["ms_rounds"]), timing.ROUNDS)

    def test_the_quickest_option_comes_first(self):
        clock = FakeClock()
        runs = {"b": clock.launch(1.1), "c": clock.launch(9.0), "a": clock.launch(1.0)}
        self.assertEqual(timing.quickest(runs, clock), ["a", "b"])


def timed(name: str, kind: str, ms: float) -> dict:
    return {
        "name": name,
        "kind": kind,
        "errors": {"c": 2e-4},
        "ms": ms,
        "ms_quartiles": [ms, ms],
        "ms_rounds": [ms, ms * 1.02],
        "burst_ms": ms,
        "host_ms": 0.01,
        "host_bound": False,
        "samples": 2,
    }


class Report(unittest.TestCase):
    def answer(self) -> dict:
        row = ROW["gemm-4096"]
        results = [
            timed("a", "generated", 0.25),
            timed("b", "generated", 0.2),
            timed("a.no-swp", "naive schedule", 0.4),
            timed(CUBLAS, CUBLAS, 0.202),
            timed("stock Triton, 8 warps", STOCK, 0.3),
        ]
        event = {"row": row.name, "size": row.size(), "flops": row.flops(), "results": results}
        result = report.row_result(row, event, 1.0, {})
        return {
            "date": "2026-01-01",
            "rehearsal": False,
            "rounds": 6,
            "revision": None,
            "seed": 1,
            "system": "",
            "gpu": {},
            "versions": {},
            "wanted": [row.name],
            "checks": [],
            "rows": [result],
            "notes": [],
            "minutes": None,
        }

    def test_our_best_is_compared_with_the_best_of_each_peer(self):
        [result] = self.answer()["rows"]
        self.assertEqual(result["ours"], "b")
        self.assertAlmostEqual(result["ratios"][CUBLAS], 1.01)
        self.assertAlmostEqual(result["ratios"][STOCK], 1.5)
        self.assertAlmostEqual(result["ratios"]["naive schedule"], 2.0)

    def test_targets(self):
        verdicts = {one["against"]: one["verdict"] for one in report.targets(self.answer())}
        self.assertEqual(verdicts, {CUBLAS: "MISSED", STOCK: "reached"})

    def test_what_is_written_can_be_read(self):
        answer = self.answer()
        answer["rows"][0]["contenders"][0]["errors"] = {"c": math.nan}
        with tempfile.TemporaryDirectory() as folder:
            report.save(answer, Path(folder))
            self.assertEqual(
                {path.name for path in Path(folder).iterdir()}, {"gpu.json", "gpu.md"}
            )
            read = json.loads((Path(folder) / "gpu.json").read_text(encoding="utf-8"))
        self.assertEqual(read["rows"][0]["contenders"][0]["errors"], {"c": "nan"})
        self.assertIn("| **b** | 687.2 |", report.markdown(answer))

    def test_verdict_of_a_check(self):
        kernel = kernel_folders.Generated("a", Path("a"), "gemm_tma", {})
        case = {"event": "case", "shape": {"K": 64}}
        good = {
            "event": "checked",
            "shape": {"K": 64},
            "errors": {"c": 1e-4},
            "overrun": [],
            "passed": True,
            "peers": {},
        }
        done, ended = {"event": "done", "info": {}}, {"event": "ended", "code": 0, "reason": ""}
        bad = good | {"passed": False, "errors": {"c": math.nan}}
        fault = [
            case,
            {"event": "failed", "shape": {"K": 64}, "reason": "illegal address"},
            {"event": "broken", "reason": "x"},
        ]
        for events, wanted in (
            ([case, good, done, ended], ""),
            ([case, bad, done, ended], "K=64: error of c nan"),
            ([case, good, case, {"event": "hung", "reason": "silent for 60 s"}], "hung at K=64: silent for 60 s"),
            ([*fault, ended | {"code": 3}], "K=64: illegal address"),
            ([ended | {"code": 1, "reason": "exit code 1: no torch"}], "stopped: exit code 1: no torch"),
        ):
            with self.subTest(wanted):
                result = report.checked(kernel, events)
                self.assertEqual((result["reason"], result["passed"]), (wanted, not wanted))

    def test_cycles_of_several_launches(self):
        tensor = "sm__pipe_tensor_cycles_active" + ncu.TENSOR_SUFFIX
        table = [
            f'"ID","Kernel Name","{ncu.TIME}","{ncu.SECTORS}","{ncu.CYCLES}","{tensor}"',
            '"","","ns","sector","cycle","%"',
            '"0","main","1,000","20","3,000.0","90"',
            '"1","after","10","1","1000","10"',
        ]
        found = ncu.read("\n".join(["==PROF== Connected", *table, "a line of the program"]))
        self.assertEqual(
            found, {"launches": 2, "cycles": 4000.0, "ns": 1010.0, "l2_sectors": 21.0, "tensor_percent": 70.0}
        )
        self.assertIn("failed", ncu.read("==ERROR== no permission"))


class Command(unittest.TestCase):
    def run_gpu(self, *arguments: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "bench.gpu", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)

    def test_list(self):
        done = self.run_gpu("--list", "gemm-pointers")
        self.assertEqual(
            [line.split()[0] for line in done.stdout.splitlines()], ["gemm-pointers-4096", "gemm-pointers-uneven"]
        )

    def test_bad_arguments_are_named(self):
        for arguments, wanted in (
            (["softmax"], "no row's name contains softmax"),
            (["--kernels", "/none"], "/none: no such folder"),
            (["--hand-written", "/"], "bench_h200.py"),
            (["--minutes", "0"], "positive"),
        ):
            with self.subTest(arguments):
                done = self.run_gpu(*arguments)
                self.assertIn(wanted, done.stderr)
                self.assertNotEqual(done.returncode, 0)


@unittest.skipUnless(torch, "needs torch")
class References(unittest.TestCase):
    def attention(self, example: str, causal: bool):
        from bench.gpu import problems

        shape = dict(batch=2, heads=1, length=96, head_dim=32, causal=causal)
        return problems, problems.problem(example, shape, 7, "cpu")

    def test_forward(self):
        for causal in (False, True):
            problems, given = self.attention("attention_forward", causal)
            problems.CHUNK, chunk = 96 * 40, problems.CHUNK
            self.addCleanup(setattr, problems, "CHUNK", chunk)
            q, k, v = (tensor.double() for tensor in (given.q, given.k, given.v))
            scores = q @ k.transpose(2, 3) / math.sqrt(32)
            if causal:
                scores += torch.full((96, 96), -math.inf, dtype=torch.float64).triu(1)
            reference = given.reference()
            torch.testing.assert_close(reference["o"], torch.softmax(scores, -1) @ v)
            torch.testing.assert_close(reference["lse"], torch.log2(torch.exp(scores).sum(-1)))

    def test_backward(self):
        for example, causal in (("attention_backward", False), ("attention_backward_causal", True)):
            problems, given = self.attention(example, causal)
            inputs = [tensor.double().requires_grad_() for tensor in (given.q, given.k, given.v)]
            o = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=causal)
            gradients = torch.autograd.grad(o, inputs, given.do.double())
            for name, wanted in zip(("dq", "dk", "dv"), gradients, strict=True):
                torch.testing.assert_close(given.reference()[name], wanted)
            torch.testing.assert_close(given.delta, (o * given.do).sum(-1).view(-1).float(), atol=2e-3, rtol=1e-2)

    def test_products(self):
        from bench.gpu import problems

        for example, name in (("gemm_tma", "c"), ("gemm_pointers", "c"), ("swiglu", "y")):
            given = problems.problem(example, dict(M=32, N=48, K=16), 3, "cpu")
            first, second, *_ = given.arguments(given.allocate())
            product = first.double() @ (second if example == "gemm_pointers" else second.T).double()
            wanted = (
                torch.nn.functional.silu(product) * (given.x.double() @ given.up.double().T) if name == "y" else product
            )
            torch.testing.assert_close(given.reference()[name], wanted)
            self.assertEqual(
                len(given.blocks(dict(BLOCK_M=16, BLOCK_N=16, BLOCK_K=16))), len(given.arguments(given.allocate()))
            )

    def test_products_with_what_surrounds_them(self):
        from bench.gpu import problems

        shape, tile = dict(M=32, N=48, K=16), dict(BLOCK_M=16, BLOCK_N=16, BLOCK_K=16)
        functional = torch.nn.functional
        wanted = {
            "gemm_bias_gelu": lambda p: functional.gelu(p.x.double() @ p.w.double().T + p.bias.double()) + p.r.double(),
            "gemm_rmsnorm": lambda p: functional.rms_norm(p.x.double(), (16,), eps=p.epsilon) @ p.w.double().T,
            "gemm_gathered": lambda p: p.every.double()[p.list.long()] @ p.b.double().T,
        }
        for example, formula in wanted.items():
            with self.subTest(example):
                given = problems.problem(example, shape, 3, "cpu")
                [found] = given.reference().values()
                torch.testing.assert_close(found, formula(given))
                self.assertEqual(len(given.blocks(tile)), len(given.arguments(given.allocate())))
        self.assertEqual(problems.problem("gemm_bias_gelu", shape, 3, "cpu").grid(tile), (6, 1, 1))

    def test_latent_attention_has_wider_scores_than_values(self):
        from bench.gpu import problems

        shape = dict(batch=1, heads=2, length=96, head_dim=32, rope_dim=16, causal=False)
        given = problems.problem("attention_mla", shape, 7, "cpu")
        q, k, v = (tensor.double() for tensor in (given.q, given.k, given.v))
        self.assertEqual((q.shape[-1], v.shape[-1]), (48, 32))
        scores = q @ k.transpose(2, 3) / math.sqrt(48)
        torch.testing.assert_close(given.reference()["o"], torch.softmax(scores, -1) @ v)
        tile = dict(BLOCK_M=16, BLOCK_N=32, HEAD_DIM=32)
        self.assertEqual(given.blocks(tile)[:4], [[16, 32], [16, 16], [32, 32], [32, 16]])

    def test_what_is_left_out_or_written_beyond_the_end_shows(self):
        problems, given = self.attention("attention_forward", False)
        out = given.allocate()
        reference = given.reference()
        out["o"].copy_(reference["o"])
        self.assertLess(problems.relative_error(out["o"], reference["o"]), problems.LIMITS["o"])
        out["o"][1, 0, 95, 31] = math.nan
        self.assertTrue(math.isnan(problems.relative_error(out["o"], reference["o"])))
        self.assertEqual(given.overrun(out), [])
        problems.memory(out["lse"])[out["lse"].numel()] = 0
        self.assertEqual(given.overrun(out), ["lse"])


if __name__ == "__main__":
    unittest.main()
