"""Wrong kernels on purpose: what is changed in a TTIR, and what becomes of it. No GPU is needed."""

import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from bench.common import ROOT
from bench.differential.arguments import TRIALS
from bench.differential.interpreted import COUNTS, program_of

from . import planting
from .planted import all_of, plant

EXAMPLES = sorted((ROOT / "examples").glob("*.ttir"))
SOME = ("gemm_tma", "gemm_pointers", "swiglu", "attention_forward_causal_d64", "attention_backward")
HAS_TRITON = importlib.util.find_spec("triton") is not None
HAS_TWILL = importlib.util.find_spec("twill_gpu") is not None
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
INTERPRETER = TARGET / "release" / "interpret"


def text(name):
    return (ROOT / "examples" / f"{name}.ttir").read_text()


def command():
    """The command `twill`, if it is there."""
    built = [TARGET / profile / "twill" for profile in ("release", "debug")]
    return os.environ.get("TWILL_COMMAND") or next((one for one in built if one.is_file()), shutil.which("twill"))


class Changes(unittest.TestCase):
    def test_a_seed_is_a_change(self):
        for name in SOME:
            changes = all_of(text(name))
            self.assertEqual(changes, all_of(text(name)))
            self.assertEqual([plant(text(name), seed) for seed in range(len(changes))], changes)
            self.assertIsNone(plant(text(name), len(changes)))
            self.assertEqual(len({change.text for change in changes}), len(changes))
            # The first of them are of different kinds.
            kinds = {change.kind for change in changes}
            self.assertEqual({change.kind for change in changes[: len(kinds)]}, kinds)

    def test_each_changes_a_line_and_may_add_one(self):
        for path in EXAMPLES:
            lines = path.read_text().splitlines()
            for change in all_of(path.read_text()):
                kept = set(change.text.splitlines())
                self.assertLessEqual(sum(line not in kept for line in lines), 1, change.said)
                self.assertLessEqual(abs(len(change.text.splitlines()) - len(lines)), 1, change.said)

    def test_kinds_of_a_product_and_of_attention(self):
        self.assertEqual(
            {change.kind for change in all_of(text("gemm_tma"))},
            {"a trip of a loop less", "an accumulator that is zero", "what the first trip loads", "a result twice as large"},
        )
        kinds = {change.kind for change in all_of(text("attention_forward_causal_d64"))}
        wanted = {
            "another comparison",
            "a selection the other way round",
            "elements combined in another way",
            "a store is left out",
        }
        self.assertLessEqual(wanted | {"another operation", "another operand", "another constant"}, kinds)

    def test_addresses_and_masks_stay(self):
        self.assertIn("arith.cmpi", text("gemm_pointers"))
        for change in all_of(text("gemm_pointers")):
            self.assertNotRegex(change.before, r"arith\.(cmpi|addi|muli|andi)|tt\.addptr", change.said)

    def test_what_another_program_may_wait_for_is_written(self):
        waiting = text("attention_backward").replace(
            "    tt.return", "    %old = tt.atomic_cas acq_rel, gpu, %p, %a, %b : i32\n    tt.return"
        )
        kinds = {change.kind for change in all_of(waiting)}
        self.assertFalse({"a store is left out", "a trip of a loop less"} & kinds)
        self.assertIn("another operation", kinds)

    def test_a_text_of_another_form_has_none(self):
        self.assertEqual(all_of((ROOT / "examples" / "fixtures" / "gemm_pointers_generic.ttir").read_text()), [])

    @unittest.skipUnless(HAS_TRITON, "Triton is missing")
    def test_triton_reads_them(self):
        from triton._C.libtriton import ir

        context = ir.context()
        ir.load_dialects(context)
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "kernel.ttir"
            for path in EXAMPLES:
                for change in all_of(path.read_text())[:12]:
                    place.write_text(change.text)
                    self.assertTrue(ir.parse_mlir_module(str(place), context).verify(), change.said)

    @unittest.skipUnless(command(), "twill is not built")
    def test_twill_reads_them(self):
        for name in SOME:
            for change in all_of(text(name))[:8]:
                said = subprocess.run([command(), "lower", "-"], input=change.text, capture_output=True, text=True)
                self.assertEqual(said.returncode, 0, f"{name}: {change.said}: {said.stderr}")

    @unittest.skipUnless(INTERPRETER.is_file(), "cargo build --release --package twill-fuzz --bin interpret")
    def test_they_compute_something_else(self):
        for name in ("gemm_tma", "swiglu", "attention_backward_d64"):
            right = executed(text(name), text(name))
            if right is None:
                self.skipTest("the interpreter is of another version")
            for change in all_of(text(name))[:6]:
                self.assertNotIn(executed(change.text, text(name)), (right, None), f"{name}: {change.said}")


def executed(ttir, original):
    """What the interpreter leaves in memory, on arguments made up for the original; None where it does not execute that."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "kernel.ttir").write_text(ttir)
        Path(folder, "program.json").write_text(json.dumps(program_of(original, TRIALS[0], COUNTS[0])))
        subprocess.run([INTERPRETER, folder], check=True, capture_output=True)
        left = Path(folder, "expected-0.bin")
        return left.read_bytes() if left.is_file() else None


class Planting(unittest.TestCase):
    DIFFERENT = "c: at [0, 1] 2.0 instead of 1.0; 3 of 8 elements differ"

    def test_seeds(self):
        self.assertEqual([planting.seeds_of(one) for one in ("0:3", "4")], [range(3), range(4, 5)])

    @unittest.skipUnless(HAS_TWILL, "twill_gpu is missing")
    def test_what_became_of_a_kernel(self):
        own, other = ["no difference", "no difference"], [f"twill, multistage: {self.DIFFERENT}"]
        for side, checked, reason, is_there, verdict in (
            ("twill", own + other, "", True, planting.NOT_NOTICED),
            ("twill, multistage", own + other, "its results differ", False, planting.NOTICED),
            ("twill", ["no difference", self.DIFFERENT], "its results differ", False, planting.NOTICED),
            ("twill", ["RefusedValue: a: no"], "RefusedValue: a: no", False, planting.NOT_COMPARED),
            ("twill", ["not checked: it reads addresses from memory, which cannot be copied"], "", True, planting.NOT_COMPARED),
            ("twill", other, "", True, planting.NOT_COMPARED),
            ("twill", other, "no schedule", False, planting.NOT_MADE),
            ("twill", [], "", False, planting.NOT_MADE),
        ):
            self.assertEqual(planting.verdict_of(side, checked, reason, is_there)[0], verdict, (side, checked))

    def test_a_seed_without_kernels_has_a_process_of_its_own(self):
        asked = []

        def answer(name, seeds):
            asked.append(seeds)
            row = {
                "kernel": "k",
                "side": "twill",
                "seed": seeds[0],
                "change": "a, line 1: `b`",
                "verdict": planting.NOT_NOTICED,
                "said": "c",
            }
            return {"case": name, "planted": [row] if name == "two" else []}

        rows = list(planting.run(["two"], range(2), answer, 1)) + list(planting.run(["none"], range(2), answer, 1))
        self.assertEqual(asked, [range(2), range(1, 2), range(2)])
        self.assertEqual([one["seed"] for one in rows[0]["planted"]], [0, 1])
        self.assertIn("two,  s: 2 NOT NOTICED\n    k (twill, seed 0)", planting.line(rows[0]))
        self.assertIn("no kernels of Twill", planting.line(rows[1]))
        self.assertIn("2 planted in 2 calls: 0 noticed, 2 NOT NOTICED", planting.summary(rows))
        self.assertIn("| a | 0 | 2 | 0 | 0 |", planting.summary(rows))


if __name__ == "__main__":
    unittest.main()
