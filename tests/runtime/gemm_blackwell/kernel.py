"""A warp-specialised GEMM for Blackwell: a TMA producer, a warp that starts MMAs, a group that stores; one array of barriers."""

from triton.experimental import gluon
import triton.experimental.gluon.language as gl
from triton.experimental.gluon.language.nvidia import blackwell
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    fence_async_shared,
    mbarrier,
    tcgen05_commit,
    tcgen05_mma,
    tma,
)
# What Triton 3.6 to 3.9 have under other names: the newer one, where there is one.
async_load = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
async_store = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global


def get_tmem_reg_layout(element, shape, layout, warps):
    if hasattr(blackwell, "get_tmem_reg_layout"):
        return blackwell.get_tmem_reg_layout(element, shape, layout, warps)
    return blackwell.tensor_memory_descriptor_type(element, shape, layout, shape).get_reg_layout(warps)


STAGES = gl.constexpr(4)
BLOCK_M = gl.constexpr(128)
BLOCK_N = gl.constexpr(128)
BLOCK_K = gl.constexpr(64)
PLACE = gl.constexpr(TensorMemoryLayout([128, 128], col_stride=1))
LAYOUT = gl.constexpr(get_tmem_reg_layout(gl.float32, [128, 128], PLACE.value, 4))


@gluon.jit
def load(a_desc, b_desc, a_buf, b_buf, bars, row, column, length, BARRIERS_AT: gl.constexpr):
    stage = 0
    phase = 1
    for k in range(0, length, BLOCK_K):
        mbarrier.wait(bars.index(STAGES + stage), phase)
        full = bars.index(stage)
        mbarrier.expect(full, a_desc.block_type.nbytes + b_desc.block_type.nbytes)
        async_load(a_desc, [row, k], full, a_buf.index(stage))
        async_load(b_desc, [k, column], full, b_buf.index(stage))
        stage = (stage + 1) % STAGES
        phase = phase ^ (stage == 0).to(gl.int32)


@gluon.jit
def mma(a_buf, b_buf, acc, bars, length, BARRIERS_AT: gl.constexpr):
    stage = 0
    phase = 0
    for k in range(0, length, BLOCK_K):
        mbarrier.wait(bars.index(stage), phase)
        tcgen05_mma(a_buf.index(stage), b_buf.index(stage), acc, use_acc=k > 0)
        tcgen05_commit(bars.index(STAGES + stage))
        stage = (stage + 1) % STAGES
        phase = phase ^ (stage == 0).to(gl.int32)
    tcgen05_commit(bars.index(2 * STAGES))


@gluon.jit
def store(c_desc, c_buf, acc, bars, row, column, layout: gl.constexpr, BARRIERS_AT: gl.constexpr):
    mbarrier.wait(bars.index(2 * STAGES), 0)
    c_buf.store(acc.load(layout).to(c_desc.dtype))
    fence_async_shared()
    async_store(c_desc, [row, column], c_buf)
    tma.store_wait(pendings=0)


@gluon.jit
def gemm(
    a_desc_128x64, b_desc_64x128, c_desc_128x128, length, programs_x, programs_y, programs_z, BARRIERS_AT: gl.constexpr
):
    a_buf = gl.allocate_shared_memory(gl.float16, [STAGES, BLOCK_M, BLOCK_K], a_desc_128x64.layout)
    b_buf = gl.allocate_shared_memory(gl.float16, [STAGES, BLOCK_K, BLOCK_N], b_desc_64x128.layout)
    c_buf = gl.allocate_shared_memory(gl.float16, [BLOCK_M, BLOCK_N], c_desc_128x128.layout)
    place: gl.constexpr = PLACE
    layout: gl.constexpr = LAYOUT
    acc = allocate_tensor_memory(gl.float32, [BLOCK_M, BLOCK_N], place)
    bars = gl.allocate_shared_memory(gl.int64, [2 * STAGES + 1, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2 * STAGES + 1):
        mbarrier.init(bars.index(i), count=1)
    row = gl.program_id(0) % programs_x * BLOCK_M
    column = gl.program_id(0) // programs_x * BLOCK_N
    gl.warp_specialize(
        [
            (store, (c_desc_128x128, c_buf, acc, bars, row, column, layout, BARRIERS_AT)),
            (mma, (a_buf, b_buf, acc, bars, length, BARRIERS_AT)),
            (load, (a_desc_128x64, b_desc_64x128, a_buf, b_buf, bars, row, column, length, BARRIERS_AT)),
        ],
        [1, 1],
        [40, 40],
    )
