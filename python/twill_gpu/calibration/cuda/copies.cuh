// Copies by TMA: rows of 128 bytes of a tensor, in boxes of ROWS of them.
#pragma once

#include "measure.cuh"

namespace twill {

constexpr int LINE = 128;
/// After the largest ring.
constexpr int BARRIERS = 6 * 256 * LINE;
/// Bytes that each CTA reads again and again, and that all read together; both fit the second-level cache.
constexpr int OWN_BYTES = 128 * 1024, COMMON_BYTES = 2048 * 1024;

/// From the issue of a copy until its data can be read: the first time, out of memory; then again, out of the cache.
/// One thread.
template <int ROWS> TWILL void time_copies(given g, const tensor_map &map) {
  begin_barriers(BARRIERS, 1, 1);
  if (threadIdx.x != 0) return;
  u32 phase = 0;
  const u32 barrier = shared_at(BARRIERS);
  const auto copy = [&](int row) {
    const i64 begin = now();
    mbarrier_arrive_expect_tx(barrier, ROWS * LINE);
    tma_load_box(shared_at(0), map, at(row, 0), barrier);
    mbarrier_wait(barrier, phase);
    phase ^= 1;
    return now() - begin;
  };
  // The map, and the page, are known from then on.
  copy(g.origin);
#pragma unroll 1
  for (int pass = 0; pass < 2; ++pass) {
#pragma unroll 1
    for (int step = 0; step < STEPS; ++step) g.out[pass * SERIES + step] = copy(g.origin + (step + 1) * ROWS);
  }
}

/// Time of N copies through a ring, by one thread.
template <int ROWS, int SLOTS> TWILL void time_stream(i64 *out, const tensor_map &map, int first, int boxes, u32 &rings) {
  const auto slot_barrier = [](int slot) { return shared_at(BARRIERS + 8 * slot); };
#pragma unroll 1
  for (int step = 0; step <= STEPS; ++step) {
    const int passes = (step == 0 ? 1 : step) * 8;
    int box = 0;
    const i64 begin = now();
#pragma unroll 1
    for (int pass = 0; pass < passes; ++pass) {
      repeat<SLOTS>([&](int slot) {
        if (pass > 0) mbarrier_wait(slot_barrier(slot), (rings + pass - 1) & 1);
        mbarrier_arrive_expect_tx(slot_barrier(slot), ROWS * LINE);
        tma_load_box(shared_at(slot * ROWS * LINE), map, at(first + box * ROWS, 0), slot_barrier(slot));
        box = box + 1 == boxes ? 0 : box + 1;
      });
    }
    repeat<SLOTS>([&](int slot) { mbarrier_wait(slot_barrier(slot), (rings + passes - 1) & 1); });
    const i64 end = now();
    rings += passes;
    if (step > 0) out[step - 1] = end - begin;
  }
}

/// Loads of each CTA's own rows, then of rows that all read.
template <int ROWS, int SLOTS> TWILL void time_loads(given g, const tensor_map &map) {
  begin_barriers(BARRIERS, SLOTS, 1);
  if (threadIdx.x != 0) return;
  i64 *out = g.out + blockIdx.x * 2 * SERIES;
  u32 rings = 0;
  time_stream<ROWS, SLOTS>(out, map, blockIdx.x * (OWN_BYTES / LINE), OWN_BYTES / (ROWS * LINE), rings);
  time_stream<ROWS, SLOTS>(out + SERIES, map, 0, COMMON_BYTES / (ROWS * LINE), rings);
}

/// Stores to each CTA's own rows, through a ring.
template <int ROWS, int SLOTS> TWILL void time_stores(given g, const tensor_map &map) {
  fill_shared(g, SLOTS * ROWS * LINE);
  if (threadIdx.x != 0) return;
  i64 *out = g.out + blockIdx.x * 2 * SERIES;
  const int first = blockIdx.x * (OWN_BYTES / LINE), boxes = OWN_BYTES / (ROWS * LINE);
#pragma unroll 1
  for (int step = 0; step <= STEPS; ++step) {
    const int passes = (step == 0 ? 1 : step) * 8;
    int box = 0;
    const i64 begin = now();
#pragma unroll 1
    for (int pass = 0; pass < passes; ++pass) {
      repeat<SLOTS>([&](int slot) {
        tma_store_wait<SLOTS - 1>();
        tma_store_box(map, at(first + box * ROWS, 0), shared_at(slot * ROWS * LINE));
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        box = box + 1 == boxes ? 0 : box + 1;
      });
    }
    tma_store_wait<0>();
    const i64 end = now();
    if (step > 0) out[step - 1] = end - begin;
  }
}

}  // namespace twill
