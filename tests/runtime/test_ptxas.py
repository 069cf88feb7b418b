"""Tests of ptxas.py: which assembler is taken, with none that is run. They need Triton, but no GPU."""

import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

import triton
from folder import HERE, runtime

ptxas, machine_code = runtime("ptxas"), runtime("machine_code")
BUNDLED = Path(triton.__file__).parent / "backends/nvidia/bin"
OLD, NEW = (12, 8, 93), (13, 3, 33)


class Chosen(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.wheel, self.named = Path(scratch.name) / "wheel", Path(scratch.name) / "named"
        self.wheel.touch()
        self.versions = {BUNDLED / "ptxas": OLD, BUNDLED / "ptxas-blackwell": (12, 9, 86), self.wheel: (13, 0, 88)}
        self.own = BUNDLED / "ptxas"
        for name, stand_in in (
            ("get_ptxas", lambda arch: types.SimpleNamespace(path=str(self.own))),
            ("version", lambda path: self.versions.get(Path(path), ())),
            ("installed", lambda: [self.wheel]),
            ("loads", lambda version: True),
        ):
            patch = mock.patch.object(ptxas, name, stand_in)
            patch.start()
            self.addCleanup(patch.stop)

    def chosen(self, arch=90):
        return Path(ptxas.chosen(arch, machine_code.is_sound).path)

    def test_an_old_one_where_there_is_no_newer(self):
        self.assertEqual(self.chosen(), BUNDLED / "ptxas")

    def test_the_newer_of_tritons_two_and_then_that_of_a_package(self):
        self.versions[self.wheel] = (13, 5, 37)
        self.assertEqual(self.chosen(), self.wheel)
        self.versions[BUNDLED / "ptxas-blackwell"] = NEW
        self.assertEqual(self.chosen(), BUNDLED / "ptxas-blackwell")
        self.versions[BUNDLED / "ptxas"] = NEW
        self.assertEqual(self.chosen(), BUNDLED / "ptxas")

    def test_one_that_somebody_named_is_taken_whatever_it_is(self):
        self.own, self.versions[self.wheel], self.versions[self.named] = self.named, NEW, OLD
        self.assertEqual(self.chosen(), self.named)

    def test_other_gpus_have_tritons(self):
        self.versions[self.wheel] = NEW
        self.assertEqual(self.chosen(100), BUNDLED / "ptxas")

    def test_one_whose_machine_code_the_driver_does_not_load_is_not_taken(self):
        self.versions[self.wheel] = NEW
        with mock.patch.object(ptxas, "loads", lambda version: False):
            self.assertEqual(self.chosen(), BUNDLED / "ptxas")


class Said(unittest.TestCase):
    def test_an_old_one_for_hopper_has_a_word(self):
        say = machine_code.assembler
        self.assertEqual((say("ptxas", NEW, 90), say("ptxas", OLD, 100)), ("ptxas 13.3.33", "ptxas 12.8.93"))
        self.assertRegex(say("ptxas", OLD, 90), r"^ptxas 12\.8\.93, .*wgmma.*13\.3")
        self.assertRegex(say("NVRTC", (13, 0), 90), r"^NVRTC 13\.0, .*13\.3")
        self.assertEqual(say("ptxas", (), 100), "ptxas of an unknown version")

    def test_a_program_that_says_no_version(self):
        self.assertEqual((ptxas.version("/nowhere"), ptxas.version("/bin/true")), ((), ()))


class Kept(unittest.TestCase):
    """Triton's cache, and machine code of another assembler than Triton's."""

    def made(self, assemble, chosen, kernel, text):
        kept = assemble.Kept(chosen, kernel, text)
        return kept.assemble(*kept.lower())

    def test_what_is_assembled_is_not_compiled_again(self):
        assemble = runtime("assemble")
        kernel, function = assemble.read_kernel(HERE / "gemm")
        with tempfile.TemporaryDirectory() as cache, mock.patch.dict("os.environ", TRITON_CACHE_DIR=cache):
            report = assemble.assemble(HERE / "gemm")
            kernel["barriers_at"] = report["barriers_at"]
            with mock.patch.object(assemble, "lowered", None), mock.patch.object(assemble, "assembled_by", None):
                built, at = assemble.build(kernel, function)
        self.assertEqual((at, built.metadata.shared), (report["barriers_at"], report["shared_memory"]))

    def test_a_cache_that_cannot_be_written(self):
        assemble = runtime("assemble")
        kernel, function = assemble.read_kernel(HERE / "gemm")
        with tempfile.NamedTemporaryFile() as file, mock.patch.dict("os.environ", TRITON_CACHE_DIR=f"{file.name}/cache"):
            built, at = assemble.build(kernel, function)
        self.assertEqual((len(built.kernel) > 0, at >= 0), (True, True))
        with tempfile.TemporaryDirectory() as cache, mock.patch.dict("os.environ", TRITON_CACHE_DIR=cache):
            with mock.patch("triton.runtime.cache.FileCacheManager.put", side_effect=OSError(28, "No space left")):
                full, _ = assemble.build(kernel, function)
        self.assertEqual(full.asm["cubin"], built.asm["cubin"])

    def test_another_version_has_another_key(self):
        assemble = runtime("assemble")
        kernel, function = assemble.read_kernel(HERE / "gemm")
        text = assemble.source(kernel, function, -1)
        own = assemble.chosen_ptxas(kernel)
        with tempfile.TemporaryDirectory() as cache, mock.patch.dict("os.environ", TRITON_CACHE_DIR=cache):
            by_triton = triton.compile(text, target=assemble.target(kernel), options=assemble.options_of(kernel))
            (first, log), (other, _) = (self.made(assemble, one, kernel, text) for one in (own, own._replace(version=(99, 0))))
            again, said = assemble.Kept(own, kernel, text).find()
            self.assertIsNone(assemble.Kept(own._replace(version=(98, 0)), kernel, text).find())
        self.assertEqual(len({by_triton.hash, first.hash, other.hash}), 3)
        self.assertEqual((again.hash, again.asm["cubin"], said), (first.hash, first.asm["cubin"], log))
        self.assertIn("registers", said)
        self.assertEqual(again.metadata.shared, by_triton.metadata.shared)
        if own.path == ptxas.get_ptxas(90).path:
            self.assertEqual(first.asm["cubin"], by_triton.asm["cubin"])


if __name__ == "__main__":
    unittest.main()
