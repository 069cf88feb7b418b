"""Tests of assemble.py: python -m unittest discover --start-directory tests/runtime. They need Triton, but no GPU."""

import json
import subprocess
import sys
import tempfile
import unittest

from folder import HERE, RUNTIME, WAIT, runtime, variant

assemble = runtime("assemble")

WIDE = [
    ("BLOCK_N = gl.constexpr(128)", "BLOCK_N = gl.constexpr(256)"),
    ("STAGES = gl.constexpr(4)", "STAGES = gl.constexpr(2)"),
    ("[2, BLOCK_M, BLOCK_N]", "[1, BLOCK_M, BLOCK_N]"),
    ("c_buf.index(which)", "c_buf.index(0)"),
    ("64x128", "64x256"),
    (
        "    stage = 0\n    phase = 0\n",
        "    stage = 0\n    phase = 0\n    total = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, layout)\n",
    ),
    ("out.store(acc", "out.store((acc + total)"),
]
"""Two accumulators of 128 registers each."""


def wide(kernel):
    return json.loads(json.dumps(kernel).replace("64x128", "64x256").replace("[64, 128]", "[64, 256]"))


class Folder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.kernel = json.loads((HERE / "gemm" / "kernel.json").read_text())

    def report(self, *replacements, bare=False, **fields):
        return assemble.assemble(variant(self.folder, *replacements, **fields), bare)

    def kinds(self, report):
        return [finding["kind"] for finding in report["findings"]]


class Barriers(Folder):
    def offset(self, at, *replacements):
        kernel, function = assemble.read_kernel(variant(self.folder, *replacements))
        return assemble.barriers_in(assemble.compiled(kernel, function, at)[0].asm["ptx"])

    def test_both_passes_find_the_array_after_the_tiles(self):
        first = self.offset(-1)
        self.assertGreaterEqual(first, 4 * (2 * 64 * 64 + 64 * 128) * 2 + 2 * 64 * 128 * 2)
        self.assertEqual(self.offset(first), first)

    def test_scattered_barriers_are_left_to_gluon(self):
        unused = (
            "for i in gl.static_range(STAGES):\n        mbarrier.init(bars.index(i), count=1)",
            "for i in gl.static_range(2):\n        mbarrier.init(bars.index(2 * i), count=1)",
        )
        self.assertEqual(self.offset(-1, unused), -1)

    def place(self, real, hint=-1):
        """Compiles of a kernel whose barriers are at real(at) when compiled with BARRIERS_AT = at."""
        tried = []

        def build(at):
            tried.append(at)
            offset = real(at)
            text = (
                "" if offset < 0 else f"mov.b32 %r1, global_smem;\nmbarrier.init.shared::cta.b64 [%r1+{offset}], 1;\n"
            )
            return f"built with {at}", text

        return assemble.place_barriers(build, hint), tried

    def test_a_right_hint_takes_one_compile(self):
        self.assertEqual(self.place(lambda at: 64, hint=64), (("built with 64", 64), [64]))

    def test_a_wrong_hint_is_found_out(self):
        self.assertEqual(self.place(lambda at: 64, hint=8), (("built with 64", 64), [8, 64]))

    def test_an_offset_that_its_own_code_denies_is_never_used(self):
        (built, at), tried = self.place(lambda at: 64 if at < 0 else at + 8)
        self.assertEqual((built, at), ("built with -1", -1))
        self.assertLessEqual(len(tried), 4)

    def test_without_barriers(self):
        self.assertEqual(self.place(lambda at: -1), (("built with -1", -1), [-1]))
        self.assertEqual(self.place(lambda at: -1, hint=64), (("built with -1", -1), [64, -1]))


class MachineCode(Folder):
    def test_gemm(self):
        report = self.report()
        self.assertEqual(report["findings"], [])
        self.assertEqual((report["barriers"], report["warps"], report["spill_stores"], report["stack"]), (8, 12, 0, 0))
        self.assertGreater(report["barriers_at"], 0)
        self.assertEqual(report["registers"], 168)
        first, second, loads = report["groups"]
        self.assertEqual([group["name"] for group in report["groups"]], ["group_1", "group_2", "group_0"])
        self.assertEqual((second["registers"], loads["registers"]), (168, 40))
        # An accumulator of 64 x 128 takes 64 of them.
        self.assertTrue(64 < second["used_registers"] <= 168 and 0 < loads["used_registers"] <= 40)
        for group in first, second:
            (loop,) = group["loops"]
            self.assertEqual(loop["order"], "SYNCS HGMMA*4 DEPBAR SYNCS")
            self.assertEqual((loop["mma"], loop["waits"]), (4, [{"pending": 0, "exp2_since_issue": 0}]))
        self.assertEqual(loads["loops"][0]["order"], "SYNCS*2 UTMALDG*4")

    def test_bare_leaves_the_barriers_to_gluon(self):
        report = self.report(bare=True)
        self.assertEqual((report["barriers_at"], self.kinds(report)), (-1, ["slow_barriers"]))
        self.assertIn("BAR", report["groups"][0]["loops"][0]["order"])

    def test_workers_that_compare_their_numbers_are_groups_too(self):
        # Without warps that only fill up, there are too few workers for a jump table.
        groups = self.report(("        [4, 1],\n", "        [4, 4],\n"))["groups"]
        self.assertEqual([group["name"] for group in groups], ["group_1", "group_2", "group_0"])
        self.assertEqual([group["registers"] for group in groups][1:], [168, 40])
        self.assertEqual([len(group["loops"]) for group in groups], [1, 1, 1])
        self.assertIn("UTMALDG", groups[2]["loops"][0]["order"])

    def test_spills_are_found_with_their_group(self):
        report = self.report(*WIDE, (WAIT, WAIT + "        total = total * 0.5 + acc\n"), **wide(self.kernel))
        self.assertIn("spilled", self.kinds(report))
        self.assertGreater(report["spill_stores"], 100)
        self.assertGreater(report["groups"][1]["local_stores"], 10)
        self.assertEqual(report["groups"][2]["local_stores"], 0)

    def test_serialised_wgmma_is_found(self):
        both = (
            "        total = warpgroup_mma(a_buf.index(2 * stage + which), b_buf.index(stage), total, is_async=True)\n"
            "        acc, total = warpgroup_mma_wait(num_outstanding=0, deps=(acc, total))\n"
        )
        report = self.report(*WIDE, (WAIT, both), **wide(self.kernel))
        self.assertIn("serialised", self.kinds(report))
        self.assertTrue(report["notes"][0]["code"].startswith("C75"))
        self.assertIn("HGMMA DEPBAR HGMMA DEPBAR", report["groups"][1]["loops"][0]["order"])

    def test_refused_registers_are_found(self):
        self.assertIn("registers_refused", self.kinds(self.report(("[168, 40]", "[48, 40]"))))

    def test_too_much_shared_memory_is_found(self):
        self.assertIn("too_large", self.kinds(self.report(("STAGES = gl.constexpr(4)", "STAGES = gl.constexpr(8)"))))

    def test_exponentials_under_a_wgmma_are_counted(self):
        # The last product, so that nothing but the order in the text says on which side of the wait they stand.
        softmax = [
            ("    acc = gl.zeros(", "    last = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, layout)\n    acc = gl.zeros("),
            ("is_async=True)\n        acc = ", "is_async=True)\n        last = gl.exp2(last)\n        acc = "),
            ("out.store(acc", "out.store((acc + last)"),
        ]
        report = self.report(
            *softmax, sass_expectation={"group_1": {"exp2_overlapped": 40}, "group_2": {"exp2_overlapped": 80}}
        )
        (loop,) = report["groups"][0]["loops"]
        self.assertEqual(loop["exp2"], 64)
        self.assertGreaterEqual(loop["exp2_overlapped"], 40)
        (finding,) = report["findings"]
        self.assertEqual((finding["kind"], finding["message"][:8]), ("hoisted_wait", "group_2:"))

    def test_steady_state_of_a_loop(self):
        mma, last, exp2 = (
            "HGMMA.64x128x16.F32 R24, gdesc[UR4], R24 ;",
            "HGMMA.64x128x16.F32 R24, gdesc[UR4], R24, gsb0 ;",
            "MUFU.EX2 R1, R2 ;",
        )
        wait = "WARPGROUP.DEPBAR.LE gsb0, 0x{} ;".format
        described = assemble.machine_code.describe([exp2, mma, exp2, last, mma, last, wait(1), exp2, exp2, wait(0), exp2])
        self.assertEqual(described["order"], "EX2 HGMMA EX2 HGMMA*3 DEPBAR EX2*2 DEPBAR EX2")
        self.assertEqual((described["exp2"], described["exp2_overlapped"]), (5, 3))
        self.assertEqual(
            described["waits"], [{"pending": 1, "exp2_since_issue": 0}, {"pending": 0, "exp2_since_issue": 2}]
        )
        # In flight across the back edge.
        self.assertEqual(assemble.machine_code.describe([exp2, wait(0), mma, last])["exp2_overlapped"], 1)

    def test_results_that_are_read_before_their_wait_are_found(self):
        mma = "HGMMA.64x64x16.F32.BF16 R{0}, gdesc[UR4], R{0}, gsb0 ;"
        wait, read = "WARPGROUP.DEPBAR.LE gsb0, 0x{} ;", "F2FP.BF16.F32.PACK_AB R8, R{}, R{} ;"

        class Code:
            def __init__(self, *blocks):
                self.blocks, self.successors = blocks, [[k + 1] for k in range(len(blocks) - 1)] + [[]]

        two = [mma.format(56), mma.format(24)]
        early = assemble.machine_code.early_use
        self.assertIsNone(early(Code([*two, wait.format(1), read.format(57, 56), wait.format(0), read.format(25, 24)])))
        self.assertIn("R25", early(Code([*two, wait.format(1), read.format(25, 24), wait.format(0)])))
        # The newer MMA of one accumulator is what is waited for, also in the next block.
        chain = [mma.format(56), mma.format(24), mma.format(56), wait.format(1)]
        self.assertIn("R57", early(Code(chain, [read.format(57, 56), wait.format(0)])))
        self.assertIsNone(early(Code(chain, [wait.format(0), read.format(57, 56)])))

    def test_products_that_nothing_reads(self):
        mma = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1,%r2}, %rd1, %rd2, p, 1, 1, 0, 0;"
        wait = "\t// wait for regs: %r1,%r2\n\twgmma.wait_group.sync.aligned 0;"
        for use, expected in [
            ("", 1),
            ("add.f32 \t%r1, %r3, %r4;", 1),
            ("@%p1 add.f32 \t%r3, %r4, %r2;", 0),
            ("st.global.b32 \t[%rd3], %r1;", 0),
            ("mov.b32 \t{%rs1, %rs2}, %r1;", 0),
            ("mov.b32 \t%r7, {%rs1, %rs2};", 1),
            ("{ .reg .pred q; setp.ne.b32 q, %r2, 0; }", 0),
        ]:
            ptx = "\n".join([mma, mma, wait, use])
            self.assertEqual(assemble.machine_code.unused_products(ptx), expected, use)

    def test_registers_of_an_instruction(self):
        for line, expected in [
            ("LDGSTS.E.BYPASS.128 [R57+0x800], desc[UR22][R22.64], P5 ;", {57, 22, 23}),
            ("@!P0 STG.E.128 desc[UR4][R2.64], R8 ;", {2, 3, 8, 9, 10, 11}),
            ("LDG.E.64 R4, desc[UR4][R2.64] ;", {2, 3, 4, 5}),
            ("IMAD.WIDE R14, R23, 0x2, R2 ;", {14, 15, 23, 2, 3}),
            ("IMAD.WIDE.U32.X R4, R2, R3, R6, P0 ;", {4, 5, 2, 3, 6, 7}),
            ("LDSM.16.M88.4 R28, [R9] ;", {28, 29, 30, 31, 9}),
            ("FADD R5, R6, -R7 ;", {5, 6, 7}),
        ]:
            self.assertEqual(assemble.machine_code.registers_of(line.split(";")[0]), expected, line)


class Blackwell(unittest.TestCase):
    def test_gemm(self):
        report = assemble.assemble(HERE / "gemm_blackwell")
        self.assertEqual((report["findings"], report["tensor_memory"], report["barriers"]), ([], 128, 9))
        self.assertGreater(report["barriers_at"], 0)
        self.assertEqual(
            [[loop["order"] for loop in group["loops"]] for group in report["groups"]],
            [[], ["SYNCS UTCHMMA*4 UTCBAR"], ["SYNCS*2 UTMALDG*3"]],
        )


class Command(Folder):
    def run_it(self, *arguments):
        return subprocess.run([sys.executable, RUNTIME / "assemble.py", *arguments], capture_output=True, text=True)

    def test_json(self):
        done = self.run_it("--json", variant(self.folder))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        report = json.loads(done.stdout)
        self.assertEqual((report["format"], report["version"], report["name"]), ("twill-assembly", 1, "gemm"))

    def test_a_kernel_that_does_not_compile(self):
        done = self.run_it("--json", variant(self.folder, (WAIT, "        acc = acc * 0.5\n")))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("kernel.py does not compile", done.stderr)
        self.assertIn("acc = acc * 0.5", done.stderr)

    def test_files_that_disagree(self):
        (variant(self.folder) / "kernel.json").write_text('{"format": "twill-kernel", "version": 1, "name": "gemm"}')
        self.assertIn("lacks function, architecture", self.run_it(self.folder).stderr)
        for fields, said in [
            ({"arguments": ["length"]}, "disagree"),
            ({"version": 2}, "version 1"),
            ({"function": "gem"}, "gem"),
            ({"parameters": []}, "no parameter stands for"),
        ]:
            done = self.run_it(variant(self.folder, **fields))
            self.assertEqual(
                (done.returncode, said in done.stderr, "Traceback" in done.stderr), (1, True, False), done.stderr
            )


if __name__ == "__main__":
    unittest.main()
