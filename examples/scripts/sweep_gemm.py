"""Which tiles make a matrix multiplication fastest on an H200? Needs no GPU; with one, `--measure 3` times the best.

python examples/scripts/sweep_gemm.py
python examples/scripts/sweep_gemm.py --measure 3
"""

import argparse
import sys
from pathlib import Path

import twill_gpu

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from gemm_tma import gemm_tma  # noqa: E402

SIZE = 4096
SPACE = {"BLOCK_M": [64, 128, 256], "BLOCK_N": [64, 128, 256], "BLOCK_K": [64, 128], "sub_tiles": [1, 2]}
SIGNATURE = {
    "a_desc": "tensordesc<fp16[{BLOCK_M}, {BLOCK_K}]>",
    "b_desc": "tensordesc<fp16[{BLOCK_N}, {BLOCK_K}]>",
    "c_desc": "tensordesc<fp16[{BLOCK_M}, {BLOCK_N}]>",
    "K": "i32:16",
}


def arguments(tile):
    """Arguments and grid of a launch with these tiles."""
    import torch
    from triton.tools.tensor_descriptor import TensorDescriptor

    torch.manual_seed(0)
    m, n, k = tile["BLOCK_M"], tile["BLOCK_N"], tile["BLOCK_K"]
    a, b, c = (torch.randn((SIZE, SIZE), device="cuda", dtype=torch.float16) for _ in range(3))
    descriptors = map(TensorDescriptor.from_tensor, (a, b, c), ([m, k], [n, k], [m, n]))
    return [*descriptors, SIZE], (SIZE // m, SIZE // n)


def reference(a, b, c, k):
    """The kernel's result, and the expected one."""
    return c.base, a.base @ b.base.T


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", type=int, default=0, metavar="K", help="time the best K on the GPU")
    parser.add_argument("--save", metavar="DIR", help="write the table, its JSON and its picture")
    told = parser.parse_args()
    found = twill_gpu.sweep(
        gemm_tma,
        SPACE,
        machine="h200",
        signature=SIGNATURE,
        measure=told.measure,
        arguments=arguments,
        reference=reference,
    )
    print(found.table(12))
    if told.save:
        found.save(told.save)


if __name__ == "__main__":
    main()
