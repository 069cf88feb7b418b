// Passes of a warp group while the tensor core runs MMAs for another.
#pragma once

#include "mma.cuh"
#include "passes.cuh"

namespace twill {

/// Returns whether any thread of a group sees the flag up, the same for all of them: an MMA takes all four warps.
TWILL bool is_up(u32 flag) {
  u32 any;
  asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0; barrier.cta.red.or.pred q, 1, 128, p; selp.u32 %0, 1, 0, q; }"
               : "=r"(any) : "r"(ld_shared_element<u32>(flag)) : "memory");
  return any;
}

/// Series of the first group with TIMES passes a round, while the flag is down.
template <int TIMES, typename Pass, int N> TWILL void time_flagged(i64 *out, u32 flag, scores<N> &x, Pass &pass) {
#pragma unroll 1
  for (int step = 0; step <= STEPS; ++step) {
    if (thread() == 0) st_shared_element<u32>(flag, 0);
    __syncthreads();
    const int rounds = step == 0 ? 8 : step * 8;
    const i64 begin = now();
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) repeat<TIMES>([&](int) { pass.round(x); });
    const i64 end = now();
    if (thread() == 0 && step > 0) out[step - 1] = end - begin;
    if (thread() == 0) st_shared_element<u32>(flag, 1);
    __syncthreads();
  }
}

/// Two passes a round, then four, as by themselves; the second group runs MMAs meanwhile.
template <template <int> typename Pass, int N, typename One> TWILL void time_pass_overlapping_mmas(given g) {
  fill_shared(g, BARRIERS);
  const u32 flag = shared_at(BARRIERS);
  scores<N> x;
  fetch(x, g);
  if (group() == 0) {
    Pass<N> pass(g);
    time_flagged<2>(g.out, flag, x, pass);
    time_flagged<4>(g.out + SERIES, flag, x, pass);
    keep(g, pass.end() + sum_of(x));
  } else {
    fragments left(g);
#pragma unroll 1
    for (int step = 0; step < 2 * (STEPS + 1); ++step) {
      __syncthreads();
      bool is_last;
      do {
        chain<One, 8>(x, left);
        is_last = is_up(flag);
        done(x);
      } while (!is_last);
      __syncthreads();
    }
    keep(g, sum_of(x));
  }
}

}  // namespace twill
