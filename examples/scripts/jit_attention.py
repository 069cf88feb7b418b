"""Attention by Triton's tutorial, with one line changed: `@twill_gpu.jit` in the place of `@triton.jit`.

On a GPU it runs, is compared with torch and timed against stock Triton; without one it is compiled to machine code.
"""

import math
import sys
from pathlib import Path

import twill_gpu

sys.path.append(str(Path(__file__).resolve().parents[1]))
from tutorial_attention import _attn_fwd as stock  # noqa: E402

# Above a function of one's own it is `@twill_gpu.jit`; here the function is the tutorial's.
attention = twill_gpu.jit(machine="h200", on_failure="error")(stock.fn)

CONSTEXPRS = {"HEAD_DIM": 128, "BLOCK_M": 128, "BLOCK_N": 128, "STAGE": 1, "warp_specialize": False}
HEADS, LENGTH = 16, 4096


def on_a_gpu(torch) -> None:
    from triton.testing import do_bench
    from triton.tools.tensor_descriptor import TensorDescriptor

    q, k, v = (torch.randn(1, HEADS, LENGTH, 128, device="cuda", dtype=torch.float16) for _ in range(3))
    o, m = torch.empty_like(q), torch.empty(HEADS, LENGTH, device="cuda")
    described = [TensorDescriptor.from_tensor(t.view(-1, 128), [128, 128]) for t in (q, k, v, o)]
    scale, grid = 1 / math.sqrt(128), (LENGTH // 128, HEADS, 1)

    def run(kernel):
        return kernel[grid](scale, m, 1, HEADS, *described, LENGTH, **CONSTEXPRS)

    kernel = run(attention)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    print(f"{kernel}: largest difference to torch {(o - expected).abs().max().item():.1e}")
    for name, function in (("stock", stock), ("twill", attention)):
        options = {"num_warps": 8, "num_stages": 2} if function is stock else {}
        time = do_bench(lambda f=function, o=options: f[grid](scale, m, 1, HEADS, *described, LENGTH, **CONSTEXPRS, **o))
        print(f"{name}: {4 * HEADS * LENGTH**2 * 128 / time / 1e9:.0f} TFLOP/s")


def without_one() -> None:
    types = {name: "tensordesc<fp16[128, 128]>" for name in ("desc_q", "desc_k", "desc_v", "desc_o")}
    types |= {"sm_scale": "fp32", "M": "*fp32:16", "Z": "i32", "H": "i32:16", "N_CTX": "i32:16"}
    fits = twill_gpu.fit(attention, "h200", types, CONSTEXPRS)
    print(fits)
    files = twill_gpu.schedule(attention, "h200", types, CONSTEXPRS).compile()
    print(f"kernel.py: {len(files['kernel.py'].splitlines())} lines")


try:
    import torch
except ImportError:
    torch = None
if torch is not None and torch.cuda.is_available():
    on_a_gpu(torch)
else:
    without_one()
