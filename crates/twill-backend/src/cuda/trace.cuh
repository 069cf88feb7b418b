/// Where a traced kernel records the time: of each of the last ITERATIONS iterations of a tile a row, with MARKS numbers.
template <u32 MARKS, u32 ITERATIONS> struct recorder_of_ {
  u64 rows;
  bool records;

  /// The time, at these marks of an iteration. All groups of a CTA read the clock of one multiprocessor. ptxas moves nothing over
  /// a reading of the clock, so that what stands between two runs between them.
  template <u32... MARK> TWILL void at(int iteration) const {
    u64 now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
    (record<MARK>(u32(iteration) % ITERATIONS, now, records), ...);
  }

  template <u32 MARK> TWILL void record(u32 row, u64 now, int stores) const {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p st.global.b64 [%0 + %3], %1; }"
                 ::"l"(rows + u64(row * (8 * MARKS))), "l"(now), "r"(stores), "n"(8 * MARK)
                 : "memory");
  }
};

