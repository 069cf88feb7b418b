"""A warp-specialised GEMM for Hopper: a TMA producer, two groups that run wgmma on 64 rows each; one array of barriers."""

from triton.experimental import gluon
import triton.experimental.gluon.language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    tma,
    mbarrier,
    fence_async_shared,
    warpgroup_mma,
    warpgroup_mma_wait,
)
# What Triton 3.6 to 3.9 have under other names: the newer one, where there is one.
async_load = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
async_store = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global

STAGES = gl.constexpr(4)
BLOCK_M = gl.constexpr(64)
BLOCK_N = gl.constexpr(128)
BLOCK_K = gl.constexpr(64)


@gluon.constexpr_function
def arrive_text(at):
    return (
        "{ .reg .pred p; .reg .b32 a; elect.sync _|p, 0xffffffff; shl.b32 a, $1, 3; add.u32 a, a, $2; "
        f"@p mbarrier.arrive.shared::cta.b64 _, [a+{at}]; mov.u32 $0, 0; }}"
    )


@gluon.constexpr_function
def wait_text(at):
    return (
        "{ .reg .pred p; .reg .b32 a; shl.b32 a, $1, 3; add.u32 a, a, $3; "
        f"again: mbarrier.try_wait.parity.shared::cta.b64 p, [a+{at}], $2; @!p bra.uni again; mov.u32 $0, 0; }}"
    )


@gluon.jit
def shared_base():
    return gl.inline_asm_elementwise("mov.u32 $0, global_smem;", "=r", [], dtype=gl.int32, is_pure=False, pack=1)


@gluon.jit
def wait(bars, i, phase, base, BARRIERS_AT: gl.constexpr):
    if BARRIERS_AT < 0:
        mbarrier.wait(bars.index(i), phase)
    else:
        gl.inline_asm_elementwise(
            wait_text(BARRIERS_AT), "=r,r,r,r", [i, phase, base], dtype=gl.int32, is_pure=False, pack=1
        )


@gluon.jit
def arrive(bars, i, base, BARRIERS_AT: gl.constexpr):
    if BARRIERS_AT < 0:
        mbarrier.arrive(bars.index(i), count=1)
    else:
        gl.inline_asm_elementwise(arrive_text(BARRIERS_AT), "=r,r,r", [i, base], dtype=gl.int32, is_pure=False, pack=1)


@gluon.jit
def load(a_desc, b_desc, a_buf, b_buf, bars, row, column, length, BARRIERS_AT: gl.constexpr):
    stage = 0
    phase = 1
    for k in range(0, length, BLOCK_K):
        mbarrier.wait(bars.index(STAGES + stage), phase)
        full = bars.index(stage)
        mbarrier.expect(full, 2 * a_desc.block_type.nbytes + b_desc.block_type.nbytes)
        async_load(a_desc, [row, k], full, a_buf.index(2 * stage))
        async_load(a_desc, [row + BLOCK_M, k], full, a_buf.index(2 * stage + 1))
        async_load(b_desc, [k, column], full, b_buf.index(stage))
        stage = (stage + 1) % STAGES
        phase = phase ^ (stage == 0).to(gl.int32)


@gluon.jit
def mma(c_desc, c_buf, a_buf, b_buf, bars, row, column, length, which: gl.constexpr, BARRIERS_AT: gl.constexpr):
    layout: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BLOCK_N, 16]
    )
    base = 0
    if BARRIERS_AT >= 0:
        base = shared_base()
    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, layout)
    stage = 0
    phase = 0
    for k in range(0, length, BLOCK_K):
        wait(bars, stage, phase, base, BARRIERS_AT)
        acc = warpgroup_mma(a_buf.index(2 * stage + which), b_buf.index(stage), acc, is_async=True)
        acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
        arrive(bars, STAGES + stage, base, BARRIERS_AT)
        stage = (stage + 1) % STAGES
        phase = phase ^ (stage == 0).to(gl.int32)
    out = c_buf.index(which)
    out.store(acc.to(c_desc.dtype))
    fence_async_shared()
    async_store(c_desc, [row + which * BLOCK_M, column], out)
    tma.store_wait(pendings=0)


@gluon.jit
def gemm(
    a_desc_64x64, b_desc_64x128, c_desc_64x128, length, programs_x, programs_y, programs_z, BARRIERS_AT: gl.constexpr
):
    a_buf = gl.allocate_shared_memory(gl.float16, [2 * STAGES, BLOCK_M, BLOCK_K], a_desc_64x64.layout)
    b_buf = gl.allocate_shared_memory(gl.float16, [STAGES, BLOCK_K, BLOCK_N], b_desc_64x128.layout)
    c_buf = gl.allocate_shared_memory(gl.float16, [2, BLOCK_M, BLOCK_N], c_desc_64x128.layout)
    bars = gl.allocate_shared_memory(gl.int64, [2 * STAGES, 1], mbarrier.MBarrierLayout())
    arrivals: gl.constexpr = 2 if BARRIERS_AT < 0 else 8  # one a group, or one a warp
    for i in gl.static_range(STAGES):
        mbarrier.init(bars.index(i), count=1)
    for i in gl.static_range(STAGES):
        mbarrier.init(bars.index(STAGES + i), count=arrivals)
    row = gl.program_id(0) % programs_x * (2 * BLOCK_M)
    column = gl.program_id(0) // programs_x * BLOCK_N
    gl.warp_specialize(
        [
            (mma, (c_desc_64x128, c_buf, a_buf, b_buf, bars, row, column, length, 0, BARRIERS_AT)),
            (mma, (c_desc_64x128, c_buf, a_buf, b_buf, bars, row, column, length, 1, BARRIERS_AT)),
            (load, (a_desc_64x64, b_desc_64x128, a_buf, b_buf, bars, row, column, length, BARRIERS_AT)),
        ],
        [4, 1],
        [168, 40],
    )
