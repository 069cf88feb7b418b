// Barriers, register handoff and the clock itself.
#pragma once

#include "measure.cuh"

namespace twill {

/// Readings of the clock, one after another.
TWILL void time_clock(given g) {
#pragma unroll 1
  for (int step = -1; step < STEPS; ++step) {
    const i64 begin = now(), end = now();
    if (thread() == 0 && step >= 0) g.out[group() * STEPS + step] = end - begin;
  }
}

/// One warp group, four times a round: arrivals; waits for a phase that is over; both, each time for the arrival before.
TWILL void time_barrier(given g) {
  begin_barriers(0, 2, 4);
  time_rounds<8>(g.out, [](int) { repeat<4>([](int) { mbarrier_arrive(shared_at(0)); }); });
  __syncthreads();
  begin_barriers(16, 1, 4);
  mbarrier_arrive(shared_at(16));
  mbarrier_wait(shared_at(16), 0);
  time_rounds<8>(g.out + SERIES, [](int) { repeat<4>([](int) { mbarrier_wait(shared_at(16), 0); }); });
  time_rounds<8>(g.out + 2 * SERIES, [](int) {
    repeat<4>([](int phase) {
      mbarrier_arrive(shared_at(8));
      mbarrier_wait(shared_at(8), phase % 2);
    });
  });
}

/// Two warp groups: each waits for the other's arrival at an mbarrier, to and fro, twice a round. Then with named barriers,
/// at which one arrives and the other waits. Then both sync at one.
TWILL void time_handoff(given g) {
  begin_barriers(0, 2, 4);
  if (group() == 0) {
    time_rounds<8>(g.out, [](int) {
      repeat<2>([](int phase) {
        mbarrier_arrive(shared_at(0));
        mbarrier_wait(shared_at(8), phase);
      });
    });
    time_rounds<8>(g.out + SERIES, [](int) {
      repeat<2>([](int) {
        named_barrier_arrive<1, 256>();
        named_barrier_sync<2, 256>();
      });
    });
  } else {
    time_rounds<8>(g.out, [](int) {
      repeat<2>([](int phase) {
        mbarrier_wait(shared_at(0), phase);
        mbarrier_arrive(shared_at(8));
      });
    });
    time_rounds<8>(g.out + SERIES, [](int) {
      repeat<2>([](int) {
        named_barrier_sync<1, 256>();
        named_barrier_arrive<2, 256>();
      });
    });
  }
  time_rounds<8>(g.out + 2 * SERIES, [](int) { repeat<4>([](int) { named_barrier_sync<3, 256>(); }); });
}

/// The threads of a warp group sync.
TWILL void time_group_sync(given g) {
  time_rounds<8>(g.out, [](int) { repeat<4>([](int) { named_barrier_sync<1, 128>(); }); });
}

/// Gives registers back and takes them again.
TWILL void time_registers(given g) {
  time_rounds<8>(g.out, [](int) {
    repeat<2>([](int) {
      setmaxnreg_dec<128>();
      setmaxnreg_inc<168>();
    });
  });
}

/// The clock and the time of day, in nanoseconds: cycles, then nanoseconds.
TWILL void time_frequency(given g) {
  u64 first, last;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(first)::"memory");
  const i64 begin = now();
  while (now() - begin < 2000000) {}
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(last)::"memory");
  const i64 end = now();
  if (thread() == 0) {
    g.out[0] = end - begin;
    g.out[1] = i64(last - first);
  }
}

}  // namespace twill
