"""Measure what a warp group's work costs on a Hopper GPU, in cycles: the figures of machines/h200.toml.

    python -m bench.gpu.hopper_costs

One CTA, one warp group, tiles of 64 x 128. Every figure is the difference of two loops that differ in one operation, divided
by the number of iterations, so that the loop itself does not count. Needs torch, triton 3.6.0 and a Hopper GPU.
"""

import json

import torch
import triton
import triton.experimental.gluon.language as gl
from triton.experimental import gluon
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, warpgroup_mma, warpgroup_mma_wait

ACC = gl.constexpr(gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 128, 16]))
TILE = gl.constexpr(gl.NVMMASharedLayout.get_default_for([128, 128], gl.float16))
LEFT = gl.constexpr(gl.NVMMASharedLayout.get_default_for([64, 128], gl.float16))
ROUNDS = 256


@gluon.jit
def clock():
    return gl.inline_asm_elementwise("mov.u32 $0, %clock;", "=r", [], dtype=gl.int32, is_pure=False, pack=1)


@gluon.jit
def work(out, values, WHAT: gl.constexpr, ROUNDS: gl.constexpr):
    """A loop of one kind of work; the results are stored so that nothing is left out."""
    rows = gl.arange(0, 64, layout=gl.SliceLayout(1, ACC))
    columns = gl.arange(0, 128, layout=gl.SliceLayout(0, ACC))
    at = gl.expand_dims(rows, 1) * 128 + gl.expand_dims(columns, 0)
    x = gl.load(values + at)
    row = gl.max(x, 1)
    q = gl.allocate_shared_memory(gl.float16, [64, 128], LEFT, x.to(gl.float16))
    k = gl.allocate_shared_memory(gl.float16, [128, 128], TILE)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    begin = clock()
    for i in range(ROUNDS):
        if WHAT == "dot":
            y = warpgroup_mma(q, k.permute((1, 0)), x, is_async=True)
            x = warpgroup_mma_wait(0, deps=(y,))
        elif WHAT == "two dots":
            y = warpgroup_mma(q, k.permute((1, 0)), x, is_async=True)
            y = warpgroup_mma(q, k.permute((1, 0)), y, is_async=True)
            x = warpgroup_mma_wait(0, deps=(y,))
        elif WHAT == "barrier and dot":
            mbarrier.arrive(bar, count=1)
            mbarrier.wait(bar, i & 1)
            y = warpgroup_mma(q, k.permute((1, 0)), x, is_async=True)
            x = warpgroup_mma_wait(0, deps=(y,))
        elif WHAT == "store and dot":
            q.store(x.to(gl.float16))
            fence_async_shared()
            gl.thread_barrier()
            y = warpgroup_mma(q, k.permute((1, 0)), x, is_async=True)
            x = warpgroup_mma_wait(0, deps=(y,))
        else:
            x = x * 1.0001 - gl.expand_dims(row, 1)
            if WHAT == "maximum":
                row = gl.maximum(row, gl.max(x, 1))
            elif WHAT == "sum":
                row = row + gl.sum(x, 1)
            elif WHAT == "exp2":
                x = gl.exp2(x)
            elif WHAT == "convert":
                x = x.to(gl.float16).to(gl.float32)
            elif WHAT == "two fma":
                x = x * 1.0002 - gl.expand_dims(row, 1)
            elif WHAT == "softmax":
                new = gl.maximum(row, gl.max(x, 1))
                p = gl.exp2(x * 1.0001 - gl.expand_dims(new, 1))
                row = new * 0.5 + gl.sum(p, 1)
                x = p.to(gl.float16).to(gl.float32)
    end = clock()
    gl.store(values + at, x + gl.expand_dims(row, 1))
    gl.store(out, end - begin)


def cycles(what):
    out = torch.zeros(1, dtype=torch.int32, device="cuda")
    seen = []
    for _ in range(5):
        values = torch.randn(64 * 128, device="cuda") * 0.01
        work[(1,)](out, values, what, ROUNDS, num_warps=4)
        seen.append(out.item() / ROUNDS)
    return sorted(seen)[2]


def main():
    kinds = ["fma", "two fma", "maximum", "sum", "exp2", "convert", "softmax", "dot", "two dots", "store and dot", "barrier and dot"]
    seen = {what: cycles(what) for what in kinds}
    fma = seen["two fma"] - seen["fma"]
    found = {
        "fma": fma,
        **{what: seen[what] - seen["fma"] for what in ("maximum", "sum", "exp2", "convert")},
        "softmax with an fma": seen["softmax"],
        "dot of 64 x 128 x 128": seen["two dots"] - seen["dot"],
        "arrival at a barrier and wait for it": seen["barrier and dot"] - seen["dot"],
        "from registers to a dot's shared memory": seen["store and dot"] - seen["dot"],
        "from the end of a dot to the next": 2 * seen["dot"] - seen["two dots"],
    }
    print(torch.cuda.get_device_name(), f"triton {triton.__version__}")
    for what, count in found.items():
        print(f"{what:36} {count:8.1f} cycles")
    print(json.dumps({"seen": seen, "found": found}))


if __name__ == "__main__":
    main()
