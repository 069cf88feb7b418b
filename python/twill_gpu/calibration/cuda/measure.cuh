// The common part of all microbenchmarks: a clock, rounds of work that are timed, and ways to keep work whose result nobody needs.
#pragma once

#include "twill.cuh"

namespace twill {

/// The arguments of a kernel. `never` is the number of a round that never runs, which the compiler cannot know.
struct given {
  i64 *out;
  float *data;
  u32 never, origin;
};

extern __shared__ __align__(1024) unsigned char shared[];
TWILL u32 shared_at(u32 byte) { return u32(__cvta_generic_to_shared(shared)) + byte; }

/// A kernel writes series of numbers: for each of three warp groups at most, STEPS of them.
constexpr int STEPS = 5, GROUPS = 3, SERIES = STEPS * GROUPS;

TWILL int group() { return threadIdx.x / 128; }
TWILL int thread() { return threadIdx.x % 128; }

/// The multiprocessor's clock. ptxas moves nothing over a reading of it.
TWILL i64 now() {
  i64 time;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(time)::"memory");
  return time;
}

/// Cycles of STRIDE, 2 STRIDE, ..., STEPS STRIDE rounds, by all warp groups at the same time; STRIDE rounds before that are
/// to fill the instruction cache.
template <int STRIDE, typename F> TWILL void time_rounds(i64 *out, F round) {
#pragma unroll 1
  for (int step = 0; step <= STEPS; ++step) {
    const int rounds = step == 0 ? STRIDE : step * STRIDE;
    __syncthreads();
    const i64 begin = now();
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) round(r);
    const i64 end = now();
    if (thread() == 0 && step > 0) out[group() * STEPS + step - 1] = end - begin;
  }
}

/// Makes a number needed.
TWILL void keep(given g, float number) {
  if (number == 1.2345e30f) g.data[0] = number;
}
TWILL void keep(given g, u32 number) { keep(g, __uint_as_float(number)); }

/// A tile of f32 as wgmma leaves it in the registers of a warp group.
template <int N> using scores = tile<float, accumulator<64, N>>;

template <int N> TWILL void fetch(scores<N> &x, given g) {
  repeat<N / 2>([&](int i) { x.held[i] = g.data[i * 128 + thread()]; });
}

template <int N> TWILL float sum_of(const scores<N> &x) {
  float sum = 0;
  repeat<N / 2>([&](int i) { sum += x.held[i]; });
  return sum;
}

/// Numbers for operands in shared memory: no zeros, no infinities.
TWILL void fill_shared(given g, int bytes) {
  for (int at = threadIdx.x; at < bytes / 4; at += blockDim.x) {
    st_shared_element<u32>(shared_at(4 * at), pair_of<__half>::pack(g.data[at % 8192], g.data[at % 8192 + 1]));
  }
  fence_proxy_async();
  __syncthreads();
}

TWILL void begin_barriers(int at, int count, int arrivals) {
  if (threadIdx.x == 0) {
    for (int i = 0; i < count; ++i) mbarrier_init(shared_at(at + 8 * i), arrivals);
    fence_mbarrier_init();
  }
  __syncthreads();
}

}  // namespace twill
