// A soft grid barrier (wave sync): CTAs begin the tiles of a wave at the same time, so that what several of them load reaches
// the L2 cache once.
#pragma once

#include "twill.cuh"

namespace twill {

/// Of the launches that may run at once, by their numbers: CTAs that are there (high half), and arrivals of all that were
/// (low half). What is here decides when CTAs go on, never what they compute. Zero again when no CTA is there, also where two
/// launches of the same number have disturbed each other.
static __device__ u64 arrivals_of_launch_[64];

/// The other CTAs of the grid, which one thread of each CTA waits for (a soft barrier).
struct grid_barrier {
  /// Cycles after which a CTA goes on alone: others may not run at all, next to other work on the GPU.
  static constexpr i64 longest_wait = 20000;
  static constexpr u64 one_cta = u64(1) << 32;

  u64 *arrivals;
  u32 whole = 0;
  bool alone = false;

  TWILL grid_barrier() {
    u64 launch;
    asm("mov.u64 %0, %%gridid;" : "=l"(launch));
    arrivals = &arrivals_of_launch_[launch % 64];
    add(one_cta);
  }

  /// Waits for the others where each of them has a tile in this wave, but not for long, and never again after a wait that ended without them.
  TWILL void wait(int tile, int tiles) {
    if (tile >= tiles / int(gridDim.x) * int(gridDim.x)) return;
    whole += gridDim.x;
    add(1);
    const i64 start = clock64();
    while (!alone && int(arrived() - whole) < 0) alone = clock64() - start > longest_wait;
  }

  /// At the end.
  TWILL void leave() {
    u64 before, found;
    asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(arrivals), "l"(u64(0) - one_cta) : "memory");
    if (before / one_cta != 1) return;
    // Unless another CTA has arrived meanwhile, which will do it then.
    asm volatile("atom.relaxed.gpu.global.cas.b64 %0, [%1], %2, 0;" : "=l"(found) : "l"(arrivals), "l"(before - one_cta) : "memory");
  }

  TWILL void add(u64 what) const { asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(arrivals), "l"(what) : "memory"); }

  TWILL u32 arrived() const {
    u64 count;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(count) : "l"(arrivals) : "memory");
    return u32(count);
  }
};

}  // namespace twill
