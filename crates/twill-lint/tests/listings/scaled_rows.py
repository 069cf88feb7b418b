"""Rows that are scaled in front of an MMA, so that its left operand is in registers; with two stages Triton 3.6 leaves it in flight.

    python scaled_rows.py OUT.ptx     (needs Triton 3.6, and no GPU)
    ptxas -lineinfo --gpu-name=sm_90a OUT.ptx -o OUT.cubin
    nvdisasm -c -g OUT.cubin
"""

import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def scaled_rows(a, b, s, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    scale = tl.load(s + m)
    acc = tl.zeros((BM, BN), tl.float32)
    for at in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + (at + k)[None, :])
        y = tl.load(b + (at + k)[:, None] * 1024 + n[None, :])
        x = (x * scale[:, None]).to(tl.bfloat16)
        acc += tl.dot(x, y)
    tl.store(c + m[:, None] * 1024 + n[None, :], acc)


sizes = {"BM": 64, "BN": 128, "BK": 32}
types = {"a": "*bf16", "b": "*bf16", "s": "*bf16", "c": "*fp32", "K": "i32"} | dict.fromkeys(sizes, "constexpr")
divisible = {(i,): [["tt.divisibility", 16]] for i in range(5)}
source = ASTSource(scaled_rows, types, sizes, divisible)
kernel = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4, "num_stages": 2})
open(sys.argv[1], "w").write(kernel.asm["ptx"])
