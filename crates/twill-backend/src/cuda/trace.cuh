/// Where a traced kernel records the time: of each of the last ITERATIONS iterations of a tile a row of TIMESTAMPS numbers.
template <u32 TIMESTAMPS, u32 ITERATIONS> struct recorder_of_ {
  u64 rows;
  bool records;

  /// The time, as these timestamps of an iteration. All groups of a CTA read the clock of one multiprocessor. ptxas moves nothing over
  /// a reading of the clock, so that what stands between two is timed by them.
  template <u32... TIMESTAMP> TWILL void at(int iteration) const {
    u64 now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
    (record<TIMESTAMP>(u32(iteration) % ITERATIONS, now, records), ...);
  }

  template <u32 TIMESTAMP> TWILL void record(u32 row, u64 now, int stores) const {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p st.global.b64 [%0 + %3], %1; }"
                 ::"l"(rows + u64(row * (8 * TIMESTAMPS))), "l"(now), "r"(stores), "n"(8 * TIMESTAMP)
                 : "memory");
  }
};

