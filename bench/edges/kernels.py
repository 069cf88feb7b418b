"""Kernels whose edges are compared: text for Triton's front end, one program each, under the name `kernel`."""

import triton
import triton.language as tl


@triton.jit
def product(a, b, c, M, N, K, a_row, a_column, b_row, b_column, c_row):
    """Tiles of A B with any strides, accumulated in 32 bits."""
    rows = tl.program_id(0) * 64 + tl.arange(0, 64)
    columns = tl.program_id(1) * 64 + tl.arange(0, 64)
    acc = tl.zeros((64, 64), tl.float32)
    for k in range(0, K, 32):
        depth = k + tl.arange(0, 32)
        x = tl.load(
            a + rows[:, None] * a_row + depth[None, :] * a_column,
            mask=(rows[:, None] < M) & (depth[None, :] < K),
            other=0.0,
        )
        y = tl.load(
            b + depth[:, None] * b_row + columns[None, :] * b_column,
            mask=(depth[:, None] < K) & (columns[None, :] < N),
            other=0.0,
        )
        acc = tl.dot(x, y, acc)
    tl.store(c + rows[:, None] * c_row + columns[None, :], acc, mask=(rows[:, None] < M) & (columns[None, :] < N))


@triton.jit
def tile_of_rows(a, b, c, rows, columns, M, N, K):
    """A tile of A B of matrices with 256 contiguous columns."""
    acc = tl.zeros((64, 64), tl.float32)
    for k in range(0, tl.cdiv(K, 64)):
        depth = k * 64 + tl.arange(0, 64)
        x = tl.load(
            a + rows[:, None] * 256 + depth[None, :], mask=(rows[:, None] < M) & (depth[None, :] < K), other=0.0
        )
        y = tl.load(
            b + depth[:, None] * 256 + columns[None, :], mask=(depth[:, None] < K) & (columns[None, :] < N), other=0.0
        )
        acc = tl.dot(x, y, acc)
    tl.store(c + rows[:, None] * 256 + columns[None, :], acc, mask=(rows[:, None] < M) & (columns[None, :] < N))


@triton.jit
def product_of_rows(a, b, c, M, N, K):
    """Tiles of A B of matrices with 256 contiguous columns, which TMA can copy."""
    rows = tl.program_id(0) * 64 + tl.arange(0, 64)
    columns = tl.program_id(1) * 64 + tl.arange(0, 64)
    tile_of_rows(a, b, c, rows, columns, M, N, K)


@triton.jit
def product_in_many_programs(a, b, c, M, N, K):
    """As `product_of_rows`, where all programs but the first four and the last do nothing."""
    program = tl.program_id(0)
    last = tl.num_programs(0) - 1
    if (program >= 3) & (program != last):
        return
    tile = tl.where(program == last, 3, program)
    rows = tile // 2 * 64 + tl.arange(0, 64)
    columns = tile % 2 * 64 + tl.arange(0, 64)
    tile_of_rows(a, b, c, rows, columns, M, N, K)


@triton.jit
def far_product(a, b, c, K, a_row, c_row):
    """A tile of A B whose rows are so far apart that their places need 64 bits."""
    rows = tl.arange(0, 64).to(tl.int64)
    columns = tl.arange(0, 64)
    acc = tl.zeros((64, 64), tl.int32)
    for k in range(0, tl.cdiv(K, 64)):
        depth = k * 64 + tl.arange(0, 64)
        x = tl.load(a + rows[:, None] * a_row + depth[None, :], mask=depth[None, :] < K, other=0)
        y = tl.load(b + depth[:, None] * 256 + columns[None, :], mask=depth[:, None] < K, other=0)
        acc = tl.dot(x, y, acc, out_dtype=tl.int32)
    tl.store(c + rows[:, None] * c_row + columns[None, :], acc.to(tl.int8))


@triton.jit
def elements(a, b, c, whole, M, N, K):
    """What operations on elements make of the numbers of a product."""
    rows = tl.program_id(0) * 64 + tl.arange(0, 64)
    columns = tl.program_id(1) * 64 + tl.arange(0, 64)
    acc = tl.zeros((64, 64), tl.float32)
    for k in range(0, tl.cdiv(K, 64)):
        depth = k * 64 + tl.arange(0, 64)
        x = tl.load(
            a + rows[:, None] * 256 + depth[None, :], mask=(rows[:, None] < M) & (depth[None, :] < K), other=0.0
        )
        x = tl.where(x != x, x, tl.maximum(x, -60000.0)).to(tl.float16)
        y = tl.load(
            b + depth[:, None] * 256 + columns[None, :], mask=(depth[:, None] < K) & (columns[None, :] < N), other=0.0
        )
        acc = tl.dot(x, y, acc)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    place = rows[:, None] * 256 + columns[None, :]
    s = tl.load(c + place, mask=mask, other=0.0)
    tl.store(whole + place, tl.maximum(s, 0.0), mask=mask)
    tl.store(whole + 65536 + place, tl.maximum(s, acc, propagate_nan=tl.PropagateNan.ALL), mask=mask)
    tl.store(whole + 2 * 65536 + place, tl.minimum(s, acc), mask=mask)
    tl.store(whole + 3 * 65536 + place, tl.where(s < acc, s, -acc), mask=mask)
    tl.store(whole + 4 * 65536 + place, tl.clamp(s, -1.0, 1.0), mask=mask)
    tl.store(whole + 5 * 65536 + place, tl.abs(acc) + s * 0.0, mask=mask)
    tl.store(whole + 6 * 65536 + place, tl.exp2(s) / acc, mask=mask)
    tl.store(whole + 7 * 65536 + place, tl.sqrt(s) + tl.log2(acc), mask=mask)
    tl.store(whole + 8 * 65536 + place, (s.to(tl.float16) + acc.to(tl.float16)).to(tl.float32), mask=mask)
    tl.store(whole + 9 * 65536 + place, s.to(tl.bfloat16).to(tl.float32), mask=mask)
    tl.store(whole + 10 * 65536 + place, s.to(tl.float8e5).to(tl.float32), mask=mask)
    tl.store(whole + 11 * 65536 + place, s.to(tl.float8e4nv).to(tl.float32), mask=mask)
    tl.store(whole + 12 * 65536 + place, s - acc * 0.5, mask=mask)
    tl.store(whole + 13 * 65536 + place, (s == acc).to(tl.float32) + 2.0 * (s >= acc).to(tl.float32), mask=mask)


@triton.jit
def reductions(a, b, out, places, M, K):
    """Largest and least numbers of rows, their places, sums and running sums; a row may have numbers that are none."""
    rows = tl.program_id(0) * 64 + tl.arange(0, 64)
    best = tl.full((64,), float("-inf"), tl.float32)
    total = tl.zeros((64,), tl.float32)
    at = tl.zeros((64,), tl.int32)
    acc = tl.zeros((64, 64), tl.float32)
    for k in range(0, tl.cdiv(K, 64)):
        depth = k * 64 + tl.arange(0, 64)
        mask = (rows[:, None] < M) & (depth[None, :] < K)
        x = tl.load(a + rows[:, None] * 256 + depth[None, :], mask=mask, other=0.0)
        y = tl.load(b + depth[:, None] * 256 + tl.arange(0, 64)[None, :], mask=depth[:, None] < K, other=0.0)
        acc = tl.dot(x, y, acc)
        wide = x.to(tl.float32)
        largest = tl.max(wide, 1)
        at = tl.where(largest > best, k * 64 + tl.argmax(wide, 1), at)
        best = tl.maximum(best, largest)
        total += tl.sum(tl.where(wide == wide, wide, 0.0), 1)
    tl.store(out + rows, best, mask=rows < M)
    tl.store(out + 256 + rows, total, mask=rows < M)
    tl.store(out + 512 + rows, tl.min(acc, 1), mask=rows < M)
    tl.store(out + 768 + rows, tl.sum(tl.cumsum(acc, 1), 1), mask=rows < M)
    tl.store(places + rows, at, mask=rows < M)


@triton.jit
def attend(q, k, v, lengths, out, sums, N, scale, IS_GUARDED: tl.constexpr):
    """Attention whose rows see as many keys as `lengths` says, also none; guarded, those are zeros."""
    rows = tl.program_id(0) * 64 + tl.arange(0, 64)
    depth = tl.arange(0, 64)
    seen = tl.load(lengths + rows)
    queries = tl.load(q + rows[:, None] * 64 + depth[None, :])
    highest = tl.full((64,), float("-inf"), tl.float32)
    total = tl.zeros((64,), tl.float32)
    acc = tl.zeros((64, 64), tl.float32)
    for start in range(0, N, 64):
        columns = start + tl.arange(0, 64)
        keys = tl.load(k + columns[None, :] * 64 + depth[:, None], mask=columns[None, :] < N, other=0.0)
        scores = tl.dot(queries, keys) * scale
        scores = tl.where((columns[None, :] < seen[:, None]) & (columns[None, :] < N), scores, float("-inf"))
        higher = tl.maximum(highest, tl.max(scores, 1))
        offset = tl.where(higher == float("-inf"), 0.0, higher) if IS_GUARDED else higher
        p = tl.exp2(scores - offset[:, None])
        factor = tl.exp2(highest - offset)
        total = total * factor + tl.sum(p, 1)
        values = tl.load(v + columns[:, None] * 64 + depth[None, :], mask=columns[:, None] < N, other=0.0)
        acc = tl.dot(p.to(tl.float16), values, acc * factor[:, None])
        highest = higher
    if IS_GUARDED:
        total = tl.where(total == 0.0, 1.0, total)
    tl.store(sums + rows, highest + tl.log2(total))
    tl.store(out + rows[:, None] * 64 + depth[None, :], (acc / total[:, None]).to(tl.float16))


@triton.jit
def attention(q, k, v, lengths, out, sums, N, scale):
    """Rows without a key are no numbers."""
    attend(q, k, v, lengths, out, sums, N, scale, False)


@triton.jit
def attention_guarded(q, k, v, lengths, out, sums, N, scale):
    """Rows without a key are zeros."""
    attend(q, k, v, lengths, out, sums, N, scale, True)


@triton.jit
def in_place(x, w, y, tiles):
    """Each tile of a row of tiles times W, to where `y` is: the same memory as `x`, or another."""
    rows = tl.program_id(0) * 64 + tl.arange(0, 64)
    depth = tl.arange(0, 64)
    weights = tl.load(w + depth[:, None] * 64 + depth[None, :])
    for tile in range(0, tiles):
        place = rows[:, None] * 256 + tile * 64 + depth[None, :]
        product = tl.dot(tl.load(x + place), weights)
        tl.store(y + place, product.to(tl.float16))


@triton.jit
def split_depth(a, b, c, counts, M, N, K):
    """Partial products of many programs, added in one place; counts of them, and the largest and least program."""
    rows = tl.arange(0, 64)
    columns = tl.arange(0, 64)
    program = tl.program_id(0)
    acc = tl.zeros((64, 64), tl.float32)
    for k in range(0, tl.cdiv(K, 32)):
        depth = k * 32 + tl.arange(0, 32)
        x = tl.load(
            a + rows[:, None] * 256 + (depth[None, :] + program) % 256,
            mask=(rows[:, None] < M) & (depth[None, :] < K),
            other=0.0,
        )
        y = tl.load(
            b + depth[:, None] * 256 + columns[None, :], mask=(depth[:, None] < K) & (columns[None, :] < N), other=0.0
        )
        acc = tl.dot(x, y, acc)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.atomic_add(c + rows[:, None] * 256 + columns[None, :], acc, mask=mask, sem="relaxed")
    tl.atomic_add(counts, 1)
    tl.atomic_max(counts + 1, program + 5)
    tl.atomic_min(counts + 2, program - 5)
    tl.atomic_xor(counts + 3, program)
    tl.atomic_or(counts + 4, 1 << (program % 31), sem="release")
    tl.atomic_add(counts + 64 + columns, columns + program, mask=columns < N)
