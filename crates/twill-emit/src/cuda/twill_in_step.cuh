// CTAs that begin their tiles together, so that what several of them load reaches the L2 cache once.
#pragma once

#include "twill.cuh"

namespace twill {

/// Arrivals, for each of the launches that may run at once. What is here decides when CTAs go on, never what they compute.
static __device__ u32 arrivals_of_launch[64];

/// Cycles after which a CTA goes on alone: others may not run at all, beside other work on the GPU.
constexpr i64 longest_meeting = 20000;

/// The other CTAs of the grid, as one thread of each meets them.
struct others {
  u32 *arrivals;
  u32 whole = 0;
  bool alone = false;

  TWILL others() {
    unsigned long long launch;
    asm("mov.u64 %0, %%gridid;" : "=l"(launch));
    arrivals = &arrivals_of_launch[launch % 64];
  }

  /// Waits for the others where each of them has a tile in this round, but not for long, and never again if they did not come.
  TWILL void meet(int tile, int tiles) {
    if (tile >= tiles / int(gridDim.x) * int(gridDim.x)) return;
    whole += gridDim.x;
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(arrivals) : "memory");
    const i64 start = clock64();
    while (!alone && int(arrived() - whole) < 0) alone = clock64() - start > longest_meeting;
  }

  /// At the end; the last CTA leaves the place as it was.
  TWILL void leave() {
    u32 before;
    asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(arrivals) : "memory");
    if (int(before + 1 - whole - gridDim.x) >= 0) *arrivals = 0;
  }

  TWILL u32 arrived() const {
    u32 count;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(count) : "l"(arrivals) : "memory");
    return count;
  }
};

}  // namespace twill
