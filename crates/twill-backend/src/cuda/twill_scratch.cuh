// What the threads of a group exchange through shared memory: tiles in another layout, reductions and scans along any
// dimension, and MMAs that are waited for.
#pragma once

#include "twill.cuh"

namespace twill {

/// Shared memory of a group of THREADS threads, which meet at a named barrier.
template <int BARRIER, int THREADS, int BYTES> struct scratch_memory {
  static constexpr int threads = THREADS, bytes = BYTES;
  u32 start;
  TWILL static void sync() { named_barrier_sync<BARRIER, THREADS>(); }
  TWILL static int thread() { return threadIdx.x % THREADS; }
};

/// A tile of any number of dimensions over the threads of W warps, one element after another; `row` counts them row by row.
template <int W, int... E> struct linear {
  static constexpr int count = (E * ... * 1), size = (count + 32 * W - 1) / (32 * W), rows_held = size, columns_held = 1;
  static constexpr bool paired = false;
  TWILL static constexpr int index(int r, int) { return r; }
  TWILL static constexpr int row_held(int i) { return i; }
  TWILL static constexpr int column_held(int) { return 0; }
  TWILL static int row(int r) { return (r * 32 * W + thread_of<W>()) % count; }
  TWILL static int column(int) { return 0; }
  TWILL static bool owns() { return count >= 32 * W || thread_of<W>() < count; }
};

template <int D> TWILL constexpr int extent_of(numbers<>) { return 1; }
template <int D, int FIRST, int... REST> TWILL constexpr int extent_of(numbers<FIRST, REST...>) {
  if constexpr (D == 0) return FIRST;
  else return extent_of<D - 1>(numbers<REST...>{});
}
template <int D, int FIRST, int... REST> TWILL constexpr int stride_of(numbers<FIRST, REST...>) {
  if constexpr (D == 0) return (REST * ... * 1);
  else return stride_of<D - 1>(numbers<REST...>{});
}

/// An element's index along a dimension of a tile.
template <int D, int W, int... E> TWILL int dimension(element<linear<W, E...>> e) {
  return e.row() / stride_of<D>(numbers<E...>{}) % extent_of<D>(numbers<E...>{});
}

/// Which element of a tile it is, row by row.
template <typename L> TWILL int flat(element<L> e) { return e.row() * width_of<L>::value + e.column(); }

template <typename L> TWILL element<L> element_at(int i) { return {L::row_held(i), L::column_held(i)}; }

// Values of any size.
template <typename T> TWILL void put(u32 address, const T &value) {
  if constexpr (sizeof(T) <= 8) st_shared_element<T>(address, value);
  else repeat<sizeof(T) / 4>([&](int k) { st_shared_element<u32>(address + 4 * k, ((const u32 *)&value)[k]); });
}
template <typename T> TWILL T get(u32 address) {
  if constexpr (sizeof(T) <= 8) return ld_shared_element<T>(address);
  T value;
  repeat<sizeof(T) / 4>([&](int k) { ((u32 *)&value)[k] = ld_shared_element<u32>(address + 4 * k); });
  return value;
}

/// The same bits as a value of another type, which may be wider.
template <typename T, typename S> TWILL T bits_as(const S &value) {
  T out{};
  constexpr int size = sizeof(T) < sizeof(S) ? sizeof(T) : sizeof(S);
  repeat<size>([&](int k) { ((u8 *)&out)[k] = ((const u8 *)&value)[k]; });
  return out;
}

/// A tile from what a thread has of it, in order.
template <typename L, typename T> TWILL tile<T, L> tile_of(const T (&held)[L::size]) {
  return each<T, L>([&](element<L> e) { return held[L::index(e.row_held, e.column_held)]; });
}

/// A tile of COUNT elements in the layout L; `place` says which of them belongs to an element of L.
template <int COUNT, typename L, typename X, typename T, typename S, typename F>
TWILL tile<T, L> convert_layout(X scratch, const tile<T, S> &from, F place) {
  constexpr int most = X::bytes / int(sizeof(T)), part = COUNT < most ? COUNT : most;
  T held[L::size];
#pragma unroll 1
  for (int first = 0; first < COUNT; first += part) {
    const auto has = [&](int at) { return part == COUNT || u32(at) < u32(part); };
    scratch.sync();
    for_each<S>([&](element<S> e) {
      const int at = flat(e) - first;
      if (has(at)) put<T>(scratch.start + at * int(sizeof(T)), from[e]);
    });
    scratch.sync();
    repeat<L::size>([&](int i) {
      const int at = place(element_at<L>(i)) - first;
      if (has(at)) held[i] = get<T>(scratch.start + at * int(sizeof(T)));
    });
  }
  return tile_of<L, T>(held);
}

/// Lines of EXTENT elements, INNER of which lie between neighbours, as many as fit in scratch memory at a time: element k of
/// line n is at k * count + n.
template <int COUNT, int EXTENT, int INNER, typename T, typename X> struct lines {
  static constexpr int all = COUNT / EXTENT, most = X::bytes / (EXTENT * int(sizeof(T))), count = all < most ? all : most;
  static_assert(count > 0, "a line fits");
  X scratch;
  int first;
  TWILL u32 address(int line, int k) const { return scratch.start + (k * count + line) * int(sizeof(T)); }
  TWILL static int line_of(int flat) { return flat / (EXTENT * INNER) * INNER + flat % INNER; }
  TWILL static int place_of(int flat) { return flat / INNER % EXTENT; }
  TWILL bool has(int line) const { return count == all || u32(line - first) < u32(count); }
  template <typename S> TWILL void store(const tile<T, S> &from) const {
    scratch.sync();
    for_each<S>([&](element<S> e) {
      const int at = flat(e), line = line_of(at);
      if (has(line)) put<T>(address(line - first, place_of(at)), from[e]);
    });
    scratch.sync();
  }
};

/// The elements of each line combined; `place` says which line's result belongs to an element of L. Neighbours first.
template <int COUNT, int EXTENT, int INNER, typename L, typename X, typename T, typename S, typename Op, typename F>
TWILL tile<T, L> reduce(X scratch, const tile<T, S> &from, Op combine, F place) {
  using these = lines<COUNT, EXTENT, INNER, T, X>;
  T held[L::size];
#pragma unroll 1
  for (int first = 0; first < these::all; first += these::count) {
    const these part{scratch, first};
    part.store(from);
#pragma unroll 1
    for (int step = 1; step < EXTENT; step *= 2) {
      constexpr int count = these::count;
#pragma unroll 1
      for (int at = scratch.thread(); at < (EXTENT + 2 * step - 1) / (2 * step) * count; at += X::threads) {
        const int line = at % count, k = at / count * 2 * step;
        if (k + step < EXTENT) {
          put<T>(part.address(line, k), T(combine(get<T>(part.address(line, k)), get<T>(part.address(line, k + step)))));
        }
      }
      scratch.sync();
    }
    repeat<L::size>([&](int i) {
      const int line = place(element_at<L>(i));
      if (part.has(line)) held[i] = get<T>(part.address(line - first, 0));
    });
  }
  return tile_of<L, T>(held);
}

/// Each element combined with those before it in its line, or after it; `place` says which one belongs to an element of L.
template <int COUNT, int EXTENT, int INNER, bool REVERSE, typename L, typename X, typename T, typename S, typename Op, typename F>
TWILL tile<T, L> scan(X scratch, const tile<T, S> &from, Op combine, F place) {
  using these = lines<COUNT, EXTENT, INNER, T, X>;
  T held[L::size];
#pragma unroll 1
  for (int first = 0; first < these::all; first += these::count) {
    const these part{scratch, first};
    part.store(from);
#pragma unroll 1
    for (int line = scratch.thread(); line < these::count; line += X::threads) {
      T sum = get<T>(part.address(line, REVERSE ? EXTENT - 1 : 0));
#pragma unroll 1
      for (int k = 1; k < EXTENT; k++) {
        const u32 at = part.address(line, REVERSE ? EXTENT - 1 - k : k);
        sum = T(combine(sum, get<T>(at)));
        put<T>(at, sum);
      }
    }
    scratch.sync();
    repeat<L::size>([&](int i) {
      const int at = place(element_at<L>(i)), line = these::line_of(at);
      if (part.has(line)) held[i] = get<T>(part.address(line - first, these::place_of(at)));
    });
  }
  return tile_of<L, T>(held);
}

// ------------------------------------------------------------------------------------------------ MMAs that are waited for

/// sum += left x right of one part of 16 rows, 8 columns and a depth of 16 ("mma.m16n8k16", 16 bits).
template <typename T> struct mma_of;
#define TWILL_MMA(T, kind)                                                                                                     \
  template <> struct mma_of<T> {                                                                                              \
    TWILL static void issue(float *d, const u32 *a, u32 b0, u32 b1) {                                                         \
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." kind "." kind ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                   : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                           \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                                           \
    }                                                                                                                         \
  };
TWILL_MMA(__half, "f16")
TWILL_MMA(__nv_bfloat16, "bf16")
#undef TWILL_MMA

/// sum += left x right, where `address` says where an element of the right operand from this depth on is.
template <typename T, int R, int C, int K, typename F>
TWILL void mma_step(tile<float, accumulator<R, C>> &sum, const tile<T, accumulator<R, K>> &left, int k, F address) {
  const int row = lane() % 4 * 2, column = lane() / 4;
  repeat<C / 8>([&](int n) {
    const auto pair = [&](int from) { return u32(ld_shared_element<u16>(address(row + from, n * 8 + column))) | u32(ld_shared_element<u16>(address(row + from + 1, n * 8 + column))) << 16; };
    const u32 low = pair(0), high = pair(8);
    repeat<accumulator<R, C>::rows_held / 2>([&](int m) {
      mma_of<T>::issue(sum.held + m * (C / 2) + n * 4, left.held + m * (K / 4) + k / 4, low, high);
    });
  });
}

/// The same with a right operand that is in shared memory; `address` takes its row and column.
template <typename T, int R, int C, int K, typename F>
TWILL void mma_with_shared(tile<float, accumulator<R, C>> &sum, const tile<T, accumulator<R, K>> &left, F address) {
  repeat<K / 16>([&](int part) { mma_step(sum, left, part * 16, [&](int k, int n) { return address(part * 16 + k, n); }); });
}

/// The same with a right operand that threads hold.
template <typename X, typename T, int R, int C, int K, typename S>
TWILL void mma_with_held(X scratch, tile<float, accumulator<R, C>> &sum, const tile<T, accumulator<R, K>> &left, const tile<T, S> &right) {
  repeat<K / 16>([&](int part) {
    scratch.sync();
    for_each<S>([&](element<S> e) {
      const int at = flat(e) - part * 16 * C;
      if (u32(at) < u32(16 * C)) put<T>(scratch.start + at * 2, right[e]);
    });
    scratch.sync();
    mma_step(sum, left, part * 16, [&](int k, int n) { return scratch.start + (k * C + n) * 2; });
  });
}

/// sum += left x right of B x M x K and B x K x N elements, multiplied and added one by one; in the numbers of the sum.
template <int B, int M, int N, int K, typename X, typename D, typename L, typename T, typename U, typename S, typename V, typename F>
TWILL tile<D, L> multiply_add(X scratch, const tile<D, L> &sum, const tile<T, S> &left, const tile<U, V> &right, F place) {
  constexpr int size = B * (M * int(sizeof(T)) + N * int(sizeof(U))), most = X::bytes / size, part = K < most ? K : most;
  static_assert(part > 0 && B * M * part * sizeof(T) % sizeof(U) == 0, "a step fits");
  D held[L::size];
  repeat<L::size>([&](int i) { held[i] = sum[element_at<L>(i)]; });
  const u32 second = scratch.start + B * M * part * int(sizeof(T));
#pragma unroll 1
  for (int first = 0; first < K; first += part) {
    scratch.sync();
    for_each<S>([&](element<S> e) {
      const int at = flat(e), k = at % K - first;
      if (u32(k) < u32(part)) put<T>(scratch.start + (k * B * M + at / K) * int(sizeof(T)), left[e]);
    });
    for_each<V>([&](element<V> e) {
      const int at = flat(e), k = at / N % K - first;
      if (u32(k) < u32(part)) put<U>(second + (k * B * N + at / (N * K) * N + at % N) * int(sizeof(U)), right[e]);
    });
    scratch.sync();
    repeat<L::size>([&](int i) {
      const int at = place(element_at<L>(i)), line = at / N, column = at / (M * N) * N + at % N;
#pragma unroll 4
      for (int k = 0; k < (K - first < part ? K - first : part); k++) {
        held[i] += D(get<T>(scratch.start + (k * B * M + line) * int(sizeof(T)))) * D(get<U>(second + (k * B * N + column) * int(sizeof(U))));
      }
    });
  }
  return tile_of<L, D>(held);
}

}  // namespace twill
