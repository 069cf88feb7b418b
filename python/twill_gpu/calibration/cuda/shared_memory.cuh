// Tiles between registers and shared memory, and from one warp group to another.
#pragma once

#include "measure.cuh"

namespace twill {

constexpr int TILE_BYTES = 32768, BARRIERS = 3 * TILE_BYTES;

template <int N> using half_tile = tile<__half, accumulator<64, N>>;
template <int N> TWILL smem_tile<__half, 64, N> half_smem() { return {shared_at(group() * TILE_BYTES)}; }
template <int N> TWILL smem_tile<float, 64, N> float_smem(int number) { return {shared_at(number * TILE_BYTES)}; }

template <int N> TWILL void fetch_half(half_tile<N> &x, given g) {
  repeat<N / 4>([&](int i) { x.held[i] = pair_of<__half>::pack(g.data[thread() + i], g.data[thread() + i + 3]); });
}

/// Stores of 64 x N numbers of 16 bits by matrices; then with a fence after each; fences alone; stores by words.
template <int N> TWILL void time_stores(given g) {
  half_tile<N> x;
  fetch_half(x, g);
  const auto to = half_smem<N>();
  time_rounds<8>(g.out, [&](int) { stmatrix(to, x); });
  time_rounds<8>(g.out + SERIES, [&](int) {
    stmatrix(to, x);
    fence_proxy_async();
  });
  time_rounds<8>(g.out + 2 * SERIES, [&](int) { repeat<4>([](int) { fence_proxy_async(); }); });
  time_rounds<8>(g.out + 3 * SERIES, [&](int) { st_shared(to, x); });
}

/// Loads of 64 x N numbers of 16 bits by matrices.
template <int N> TWILL void time_loads(given g) {
  fill_shared(g, 3 * TILE_BYTES);
  u32 all = 0;
  time_rounds<8>(g.out, [&](int r) {
    const auto x = ldmatrix(half_smem<N>());
    repeat<N / 8>([&](int i) {
      asm("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(all) : "r"(x.held[2 * i]), "r"(x.held[2 * i + 1]));
    });
    if (u32(r) == g.never) st_shared_element<u32>(shared_at(4 * threadIdx.x), all);
  });
  keep(g, all);
}

/// From one warp group to another and back, each way: stores, an arrival of each warp, the wait for it, loads.
template <int N> TWILL void time_handoffs(given g) {
  begin_barriers(BARRIERS, 2, 4);
  scores<N> x;
  fetch(x, g);
  const u32 to = shared_at(BARRIERS), from = shared_at(BARRIERS + 8);
  u32 phase = 0;
  if (group() == 0) {
    time_rounds<8>(g.out, [&](int) {
      st_shared(float_smem<N>(0), x);
      mbarrier_arrive(to);
      mbarrier_wait(from, phase);
      x = ld_shared<float, accumulator<64, N>>(float_smem<N>(1));
      phase ^= 1;
    });
  } else {
    time_rounds<8>(g.out, [&](int) {
      mbarrier_wait(to, phase);
      x = ld_shared<float, accumulator<64, N>>(float_smem<N>(0));
      st_shared(float_smem<N>(1), x);
      mbarrier_arrive(from);
      phase ^= 1;
    });
  }
  keep(g, sum_of(x));
}

/// The same with a number of each row.
TWILL void time_row_handoffs(given g) {
  begin_barriers(BARRIERS, 2, 4);
  using numbers_of_rows = tile<float, accumulator_rows<64>>;
  numbers_of_rows x{{g.data[thread()], g.data[thread() + 1]}};
  const smem_tile<float, 1, 64> first{shared_at(0)}, second{shared_at(TILE_BYTES)};
  const u32 to = shared_at(BARRIERS), from = shared_at(BARRIERS + 8);
  u32 phase = 0;
  if (group() == 0) {
    time_rounds<8>(g.out, [&](int) {
      st_shared(first, x);
      mbarrier_arrive(to);
      mbarrier_wait(from, phase);
      x = ld_shared<float, accumulator_rows<64>>(second);
      phase ^= 1;
    });
  } else {
    time_rounds<8>(g.out, [&](int) {
      mbarrier_wait(to, phase);
      x = ld_shared<float, accumulator_rows<64>>(first);
      st_shared(second, x);
      mbarrier_arrive(from);
      phase ^= 1;
    });
  }
  keep(g, x.held[0] + x.held[1]);
}

}  // namespace twill
