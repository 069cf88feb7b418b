# Lanes of a warp that arrive at a barrier. One is enough once its warp is synchronised; tools that follow threads one by
# one, such as compute-sanitizer's racecheck, take what the other lanes did for a race unless all 32 arrive.
ARRIVING_LANES = gl.constexpr(1)


@gluon.constexpr_function
def _arrive_ptx():
    if ARRIVING_LANES.value == 32:
        return "mbarrier.arrive.shared::cta.b64 _, [$1]; mov.u32 $0, 0;"
    return (
        "{ .reg .pred p; bar.warp.sync 0xffffffff; elect.sync _|p, 0xffffffff; "
        "@p mbarrier.arrive.shared::cta.b64 _, [$1]; mov.u32 $0, 0; }"
    )


@gluon.constexpr_function
def _wait_ptx():
    return (
        "{ .reg .pred p; waitLoop: mbarrier.try_wait.parity.shared::cta.b64 p, [$1], $2; "
        "@!p bra.uni waitLoop; mov.u32 $0, 0; }"
    )


@gluon.jit
def barrier_base(BARRIERS_AT: gl.constexpr):
    """Address of the first barrier in shared memory, found once: in a loop it would stand before every wait."""
    if BARRIERS_AT < 0:
        return 0
    else:
        start = gl.inline_asm_elementwise(
            "mov.u32 $0, global_smem;", "=r", [], dtype=gl.int32, is_pure=False, pack=1
        )
        return start + BARRIERS_AT


@gluon.jit
def mbarrier_wait(bars, base, index, phase, BARRIERS_AT: gl.constexpr):
    """Wait until a barrier has completed the phase of this parity.

    LLVM moves loads from shared memory over PTX that does not say `~{memory}`, and Gluon's own barriers do not.
    """
    if BARRIERS_AT < 0:
        mbarrier.wait(bars.index(index), phase)
        gl.inline_asm_elementwise("mov.u32 $0, 0;", "=r,~{memory}", [], dtype=gl.int32, is_pure=False, pack=1)
    else:
        gl.inline_asm_elementwise(
            _wait_ptx(), "=r,r,r,~{memory}", [base + index * 8, phase], dtype=gl.int32, is_pure=False, pack=1
        )


@gluon.jit
def mbarrier_arrive(bars, base, index, BARRIERS_AT: gl.constexpr):
    """Arrive at a barrier: one thread of the group, or with inline PTX one of every warp, which needs no bar.sync."""
    if BARRIERS_AT < 0:
        gl.inline_asm_elementwise("mov.u32 $0, 0;", "=r,~{memory}", [], dtype=gl.int32, is_pure=False, pack=1)
        mbarrier.arrive(bars.index(index), count=1)
    else:
        gl.inline_asm_elementwise(
            _arrive_ptx(), "=r,r,~{memory}", [base + index * 8], dtype=gl.int32, is_pure=False, pack=1
        )


@gluon.jit
def next_slot(slot, SLOTS: gl.constexpr):
    """The slot after this one."""
    if SLOTS & (SLOTS - 1) == 0:
        return (slot + 1) & (SLOTS - 1)
    else:
        return gl.where(slot == SLOTS - 1, 0, slot + 1)


@gluon.jit
def advance(slot, phase, SLOTS: gl.constexpr):
    """The slot after this one, and its phase."""
    after = next_slot(slot, SLOTS)
    return after, phase ^ (after == 0).to(gl.int32)


@gluon.jit
def columns_of(tile, FIRST: gl.constexpr, COLUMNS: gl.constexpr):
    """Columns of an MMA's result, half by half: each thread keeps those that it has."""
    half: gl.constexpr = tile.shape[1] // 2
    if tile.shape[1] == COLUMNS:
        return tile
    else:
        left, right = gl.split(gl.permute(gl.reshape(tile, [tile.shape[0], 2, half]), [0, 2, 1]))
        if FIRST < half:
            return columns_of(left, FIRST, COLUMNS)
        else:
            return columns_of(right, FIRST - half, COLUMNS)


@gluon.jit
def row_partials(tile):
    """Row sums, by each of the four threads that a row lies in over its own columns."""
    rows: gl.constexpr = tile.shape[0]
    columns: gl.constexpr = tile.shape[1]
    return gl.sum(gl.sum(tile.reshape([rows, columns // 8, 4, 2]), 3), 1)
