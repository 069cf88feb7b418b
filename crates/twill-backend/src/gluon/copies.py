@gluon.jit
def mbarrier_arrive_after_copies(bars, base, index, BARRIERS_AT: gl.constexpr):
    """Every thread arrives at a barrier when its copies to shared memory are done.

    Where Gluon's own arrives, the group's threads meet before it each time: Triton sees two writes to one array of barriers.
    """
    if BARRIERS_AT < 0:
        async_copy.mbarrier_arrive(bars.index(index), increment_count=False)
    else:
        gl.inline_asm_elementwise(
            "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$1]; mov.u32 $0, 0;",
            "=r,r,~{memory}",
            [base + index * 8],
            dtype=gl.int32,
            is_pure=False,
            pack=1,
        )


@gluon.constexpr_function
def _expect_ptx():
    return (
        "{ .reg .pred p; bar.warp.sync 0xffffffff; elect.sync _|p, 0xffffffff; "
        "@p mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$1], $2; mov.u32 $0, 0; }"
    )


@gluon.jit
def mbarrier_expect_from_warps(base, index, bytes):
    """Expect bytes at a barrier for each warp of the group, without an arrival: all its threads arrive later."""
    gl.inline_asm_elementwise(
        _expect_ptx(), "=r,r,r,~{memory}", [base + index * 8, bytes], dtype=gl.int32, is_pure=False, pack=1
    )
