// What two CTAs of a cluster share (PTX ISA 8.0 and later).
#pragma once

#include "twill.cuh"

namespace twill {

/// Which of the cluster's CTAs this is.
TWILL u32 cluster_rank() {
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// All threads of both CTAs wait for each other: barriers of both are initialised, and no CTA ends while the other copies to it.
TWILL void cluster_sync() { asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" ::: "memory"); }

/// One thread of every warp arrives, at the barrier of both CTAs. Nothing that threads wrote passes: tensor cores alone
/// read such slots, and are waited for before. A release of cluster scope would be a fence of all memory, at a third of a kernel's speed.
TWILL void mbarrier_arrive_both(u32 barrier) {
  asm volatile("{ .reg .pred p; .reg .b32 there; bar.warp.sync 0xffffffff; elect.sync _|p, 0xffffffff;"
               " mapa.shared::cluster.u32 there, %0, 0; @p mbarrier.arrive.shared::cluster.b64 _, [there];"
               " mapa.shared::cluster.u32 there, %0, 1; @p mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(barrier) : "memory");
}

TWILL void tma_multicast(u32 to, const tensor_map &map, coordinates<2> c, u32 barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to), "l"(&map), "r"(c.at[1]), "r"(c.at[0]), "r"(barrier), "h"(u16(3)) : "memory");
}

/// Starts the copy of this CTA's half of a tile, the upper or the lower rows, to where it belongs in both; the other CTA
/// brings the other half. By one thread. The map's boxes have half as many rows as the tile.
template <typename P> TWILL void tma_load_multicast(const tensor_map &map, coordinates<2> c, P to, u32 barrier) {
  mbarrier_arrive_expect_tx(barrier, P::rows * P::columns * sizeof(typename P::type));
  const u32 first = cluster_rank() * (P::rows / 2);
  c.at[0] += first;
  each_panel(to, c, [&](u32 panel, coordinates<2> at) { tma_multicast(panel + first * P::line, map, at, barrier); });
}

}  // namespace twill
