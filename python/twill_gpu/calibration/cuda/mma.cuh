// MMAs of the tensor core: chains of wgmma, and the gap between a chain and the next.
#pragma once

#include "measure.cuh"

namespace twill {

/// Where the operands of a warp group are: tiles with lines of 128 bytes.
constexpr int LEFT_BYTES = 3 * 8192, RIGHT_BYTES = 32768, BARRIERS = 2 * (LEFT_BYTES + RIGHT_BYTES);
using left_tile = smem_tile<__half, 64, 192>;
template <int N> using right_tile = smem_tile<__half, N, 64>;
TWILL left_tile left_of(int group) { return {shared_at(group * LEFT_BYTES)}; }
template <int N> TWILL right_tile<N> right_of(int group) { return {shared_at(2 * LEFT_BYTES + group * RIGHT_BYTES)}; }

/// Registers of the left operand for four instructions along the depth.
struct fragments {
  u32 held[16];
  TWILL fragments(given g) {
    repeat<16>([&](int i) { held[i] = pair_of<__half>::pack(g.data[thread() + i], g.data[thread() + i + 1]); });
  }
};

/// COUNT instructions in a group, each adding to the same result.
template <typename One, int COUNT, int N> TWILL void chain(scores<N> &sum, fragments &left) {
  wgmma_fence();
  repeat<COUNT>([&](int k) {
    const u64 right = matrix(right_of<N>(group()), k % 4 * 32);
    if constexpr (One::left_in_registers) {
      One::issue(sum.held, left.held + k % 4 * 4, right);
    } else {
      One::issue(sum.held, matrix(left_of(group()), byte_of<left_tile>(0, k % 12 * 16)), right);
    }
  });
  wgmma_commit_group();
}

template <int N> TWILL void done(scores<N> &sum) {
  wgmma_wait_group<0>();
  operand_fence(sum);
}

template <typename One, int COUNT, int TIMES, int N> TWILL void time_chain(i64 *out, scores<N> &sum, fragments &left) {
  time_rounds<8>(out, [&](int) {
    repeat<TIMES>([&](int) {
      chain<One, COUNT>(sum, left);
      done(sum);
    });
  });
}

/// Chains of several lengths, twice in each round; the last four times.
template <typename One, int N> TWILL void time_chains(given g) {
  fill_shared(g, BARRIERS);
  fragments left(g);
  scores<N> sum;
  fetch(sum, g);
  time_chain<One, 2, 2>(g.out, sum, left);
  time_chain<One, 4, 2>(g.out + SERIES, sum, left);
  time_chain<One, 8, 2>(g.out + 2 * SERIES, sum, left);
  time_chain<One, 16, 2>(g.out + 3 * SERIES, sum, left);
  time_chain<One, 4, 4>(g.out + 4 * SERIES, sum, left);
  keep(g, sum_of(sum));
}

/// A chain of eight; with an arrival of each warp at a barrier and the wait for it before it; the same with an arrival of
/// one thread for all, as kernels of Triton's have it.
template <typename One, int N> TWILL void time_waited_chains(given g) {
  fill_shared(g, BARRIERS);
  begin_barriers(BARRIERS, 1, 4);
  begin_barriers(BARRIERS + 8, 1, 1);
  fragments left(g);
  scores<N> sum;
  fetch(sum, g);
  const auto time = [&](i64 *out, auto before) {
    time_rounds<8>(out, [&](int) {
      repeat<2>([&](int phase) {
        before(phase);
        chain<One, 8>(sum, left);
        done(sum);
      });
    });
  };
  time(g.out, [](int) {});
  time(g.out + SERIES, [](int phase) {
    mbarrier_arrive(shared_at(BARRIERS));
    mbarrier_wait(shared_at(BARRIERS), phase);
  });
  time(g.out + 2 * SERIES, [](int phase) {
    named_barrier_sync<1, 128>();
    if (thread() == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_at(BARRIERS + 8)) : "memory");
    mbarrier_wait(shared_at(BARRIERS + 8), phase);
  });
  keep(g, sum_of(sum));
}

/// A chain that reads 64 x C numbers of 16 bits, without and with their way from registers to shared memory before it.
template <typename One, int N, int C> TWILL void time_stored_chains(given g) {
  fill_shared(g, BARRIERS);
  fragments left(g);
  scores<N> sum;
  fetch(sum, g);
  tile<__half, accumulator<64, C>> stored;
  repeat<C / 4>([&](int i) { stored.held[i] = pair_of<__half>::pack(g.data[thread() + i], g.data[thread() + i + 3]); });
  const auto time = [&](i64 *out, auto before) {
    time_rounds<8>(out, [&](int) {
      before();
      chain<One, C / 16>(sum, left);
      done(sum);
    });
  };
  time(g.out, [] {});
  time(g.out + SERIES, [&] {
    stmatrix(smem_tile<__half, 64, C>{shared_at(0)}, stored);
    fence_proxy_async();
    named_barrier_sync<1, 128>();
  });
  keep(g, sum_of(sum));
}

/// Two warp groups: the first starts a chain of MANY, the second one of FEW some cycles later. What is written: when
/// each was done, from the start of the first. After that, when the second started.
template <typename One, int N, int MANY, int FEW> TWILL void time_sharing(given g) {
  fill_shared(g, BARRIERS);
  fragments left(g);
  scores<N> sum;
  fetch(sum, g);
  i64 *start = (i64 *)(shared + BARRIERS);
#pragma unroll 1
  for (int step = -1; step < STEPS; ++step) {
    const int delay = step < 0 ? 0 : step == STEPS - 1 ? 4000 : 100 + 150 * step;
    __syncthreads();
    if (threadIdx.x == 0) *start = now() + 1000;
    __syncthreads();
    const i64 zero = *start;
    if (group() == 0) {
      while (now() < zero) {}
      chain<One, MANY>(sum, left);
      done(sum);
      const i64 end = now();
      if (thread() == 0 && step >= 0) g.out[step] = end - zero;
    } else {
      while (now() < zero + delay) {}
      const i64 begin = now();
      chain<One, FEW>(sum, left);
      done(sum);
      const i64 end = now();
      if (thread() == 0 && step >= 0) {
        g.out[STEPS + step] = end - zero;
        g.out[2 * STEPS + step] = begin - zero;
      }
    }
  }
  keep(g, sum_of(sum));
}

}  // namespace twill
