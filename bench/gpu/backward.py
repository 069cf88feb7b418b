"""What the backward pass of attention needs around its kernel, to be timed as a whole. Needs torch and triton."""

import triton
import triton.language as tl

BLOCK = 4096


@triton.jit
def row_dots_kernel(o_ptr, do_ptr, delta_ptr, DIM: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = rows[:, None] * DIM + tl.arange(0, DIM)[None, :]
    o, do = tl.load(o_ptr + at).to(tl.float32), tl.load(do_ptr + at).to(tl.float32)
    tl.store(delta_ptr + rows, tl.sum(o * do, 1))


@triton.jit
def scaled_kernel(from_ptr, to_ptr, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(to_ptr + at, (tl.load(from_ptr + at) * scale).to(tl.float16))


def row_dots(o, do, delta) -> None:
    """delta = the sum of O ∘ dO over each row; rows a multiple of 32."""
    row_dots_kernel[(o.shape[0] // 32,)](o, do, delta, DIM=o.shape[1], ROWS=32)


def scaled(tensor, to, scale: float) -> None:
    """to = tensor · scale in float16; elements a multiple of 4096."""
    scaled_kernel[(tensor.numel() // BLOCK,)](tensor, to, scale, BLOCK=BLOCK)
