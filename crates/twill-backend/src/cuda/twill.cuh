// Tile primitives of generated kernels: how the threads of a warp group hold a tile, and the instructions that copy and
// MMA tiles. For Hopper (sm_90a); PTX ISA 8.0 and later, whose sections are named where they say what is done here.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace twill {

#define TWILL __device__ __forceinline__

using i8 = signed char;
using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

/// What TMA knows of a tensor: made by cuTensorMapEncodeTiled, and passed as a __grid_constant__.
struct alignas(64) tensor_map {
  u64 opaque[16];
};

// Calls a function with 0, 1, ..., N - 1. Written out by the front end and not by an optimiser that may stop half way:
// what is kept in an array must end up in registers.
template <int... I> struct numbers {};
template <typename A, typename B> struct joined;
template <int... I, int... J> struct joined<numbers<I...>, numbers<J...>> {
  using type = numbers<I..., int(sizeof...(I)) + J...>;
};
template <int N> struct count_to {
  using type = typename joined<typename count_to<N / 2>::type, typename count_to<N - N / 2>::type>::type;
};
template <> struct count_to<0> {
  using type = numbers<>;
};
template <> struct count_to<1> {
  using type = numbers<0>;
};
template <typename F, int... I> TWILL void repeat(F f, numbers<I...>) { (f(I), ...); }
template <int N, typename F> TWILL void repeat(F f) { repeat(f, typename count_to<N>::type{}); }

// ------------------------------------------------------------------------------------------------------------ threads

/// Number of a thread within its group of W warps, which begins at a multiple of W.
template <int W> TWILL int thread_of() { return threadIdx.x % (32 * W); }

// 0, which the compiler is not told: addresses that are computed with it are not computed before, and held.
TWILL int unknown_zero() {
  int zero = 0;
  asm volatile("" : "+r"(zero));
  return zero;
}

TWILL int lane() { return threadIdx.x % 32; }

/// One thread of a warp: always the same ("elect.sync"), for a barrier is signalled when what its own thread started is done.
TWILL bool elected() {
  u32 is_this;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p; }" : "=r"(is_this));
  return is_this;
}

/// All threads of a group wait at a named barrier ("bar.sync").
template <int BARRIER, int THREADS> TWILL void named_barrier_sync() { asm volatile("bar.sync %0, %1;" ::"n"(BARRIER), "n"(THREADS) : "memory"); }

/// Arrive at a named barrier without waiting ("bar.arrive").
template <int BARRIER, int THREADS> TWILL void named_barrier_arrive() { asm volatile("bar.arrive %0, %1;" ::"n"(BARRIER), "n"(THREADS) : "memory"); }

/// Registers a thread from here on, for all four warps of a warp group ("setmaxnreg").
template <int COUNT> TWILL void setmaxnreg_dec() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT)); }
template <int COUNT> TWILL void setmaxnreg_inc() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT)); }

// ------------------------------------------------------------------------------------------- layouts of tiles in threads
//
// A thread holds rows_held x columns_held elements of a tile; `index` is where one of them is kept, `row` and `column` are
// where it is in the tile. In a paired layout, neighbours in a row are kept side by side.

/// The result of wgmma m64nNk16, and its left operand of 16 bits ("Register Fragments for wgmma.mma_async.m64nNk16"), of
/// R / 64 MMAs below each other. Of 16 or 32 rows, each is held by several warps.
template <int R, int C> struct accumulator {
  static constexpr int rows_held = R < 64 ? 2 : R / 32, columns_held = C / 4, size = rows_held * columns_held;
  static constexpr bool paired = true;
  TWILL static constexpr int index(int r, int c) { return r / 2 * (C / 2) + c / 2 * 4 + r % 2 * 2 + c % 2; }
  TWILL static constexpr int row_held(int i) { return i / (C / 2) * 2 + i / 2 % 2; }
  TWILL static constexpr int column_held(int i) { return i % (C / 2) / 4 * 2 + i % 2; }
  TWILL static int first_row() { return threadIdx.x % 128 / 32 * 16; }
  TWILL static int row(int r) { return r / 2 * 64 + r % 2 * 8 + first_row() % (R < 64 ? R : 64) + lane() / 4; }
  TWILL static int column(int c) { return c / 2 * 8 + c % 2 + lane() % 4 * 2; }
  TWILL static bool owns() { return R >= 64 || first_row() < R; }
};

/// A value for each row of an accumulator: every four threads hold the same.
template <int R> struct accumulator_rows {
  static constexpr int rows_held = accumulator<R, 8>::rows_held, columns_held = 1, size = rows_held;
  static constexpr bool paired = false;
  TWILL static constexpr int index(int r, int) { return r; }
  TWILL static constexpr int row_held(int i) { return i; }
  TWILL static constexpr int column_held(int) { return 0; }
  TWILL static int row(int r) { return accumulator<R, 8>::row(r); }
  TWILL static int column(int) { return 0; }
  TWILL static bool owns() { return accumulator<R, 8>::owns() && lane() % 4 == 0; }
};

/// A value for each row of an accumulator and each of the four threads that hold it.
template <int R> struct accumulator_partials : accumulator_rows<R> {
  TWILL static int column(int) { return lane() % 4; }
  TWILL static bool owns() { return accumulator<R, 8>::owns(); }
};

/// A value for each column of an accumulator.
template <int C> struct accumulator_columns {
  static constexpr int rows_held = 1, columns_held = C / 4, size = C / 4;
  static constexpr bool paired = true;
  TWILL static constexpr int index(int, int c) { return c; }
  TWILL static constexpr int row_held(int) { return 0; }
  TWILL static constexpr int column_held(int i) { return i; }
  TWILL static int row(int) { return 0; }
  TWILL static int column(int c) { return accumulator<64, C>::column(c); }
  TWILL static bool owns() { return threadIdx.x % 128 < 4; }
};

/// N elements of one dimension, one after another over the threads of W warps.
template <int N, int W> struct blocked {
  static constexpr int size = (N + 32 * W - 1) / (32 * W), rows_held = size, columns_held = 1;
  static constexpr bool paired = false;
  TWILL static constexpr int index(int r, int) { return r; }
  TWILL static constexpr int row_held(int i) { return i; }
  TWILL static constexpr int column_held(int) { return 0; }
  TWILL static int row(int r) { return (r * 32 * W + thread_of<W>()) % N; }
  TWILL static int column(int) { return 0; }
  TWILL static bool owns() { return N >= 32 * W || thread_of<W>() < N; }
};

/// R x C elements over the threads of W warps: up to eight neighbours to a thread, a row over eight threads.
template <int R, int W> struct blocked_rows {
  static constexpr int down = 4 * W, size = (R + down - 1) / down, rows_held = size, columns_held = 1;
  static constexpr bool paired = false;
  TWILL static constexpr int index(int r, int) { return r; }
  TWILL static constexpr int row_held(int i) { return i; }
  TWILL static constexpr int column_held(int) { return 0; }
  TWILL static int row(int r) { return (r * down + thread_of<W>() / 8) % R; }
  TWILL static int column(int) { return 0; }
  TWILL static bool holds() { return R >= down || thread_of<W>() / 8 < R; }
  TWILL static bool owns() { return holds() && lane() % 8 == 0; }
};
template <int C, int W> struct blocked_columns {
  static constexpr int width = C < 8 ? C : 8, rows_held = 1, columns_held = (C + 8 * width - 1) / (8 * width) * width, size = columns_held;
  static constexpr bool paired = width > 1;
  TWILL static constexpr int index(int, int c) { return c; }
  TWILL static constexpr int row_held(int) { return 0; }
  TWILL static constexpr int column_held(int i) { return i; }
  TWILL static int row(int) { return 0; }
  TWILL static int column(int c) { return (c / width * (8 * width) + lane() % 8 * width + c % width) % C; }
  TWILL static bool holds() { return C >= 8 * width || lane() % 8 * width < C; }
  TWILL static bool owns() { return holds() && thread_of<W>() < 8; }
};
template <int R, int C, int W> struct blocked_tile {
  using down = blocked_rows<R, W>;
  using across = blocked_columns<C, W>;
  static constexpr int rows_held = down::size, columns_held = across::size, size = rows_held * columns_held;
  static constexpr bool paired = across::paired;
  TWILL static constexpr int index(int r, int c) { return r * columns_held + c; }
  TWILL static constexpr int row_held(int i) { return i / columns_held; }
  TWILL static constexpr int column_held(int i) { return i % columns_held; }
  TWILL static int row(int r) { return down::row(r); }
  TWILL static int column(int c) { return across::column(c); }
  TWILL static bool owns() { return down::holds() && across::holds(); }
};

/// Columns of a tile; 1 where its elements are counted by rows or by columns alone.
template <typename L> struct width_of { static constexpr int value = 1; };
template <int R, int C> struct width_of<accumulator<R, C>> { static constexpr int value = C; };
template <int R> struct width_of<accumulator_partials<R>> { static constexpr int value = 4; };
template <int R, int C, int W> struct width_of<blocked_tile<R, C, W>> { static constexpr int value = C; };

/// An element that a thread holds in a layout.
template <typename L> struct element {
  int row_held, column_held;
  TWILL int row() const { return L::row(row_held); }
  TWILL int column() const { return L::column(column_held); }
};

// ------------------------------------------------------------------------------------------------------ numbers, in pairs

template <typename T> struct pair_of;
template <> struct pair_of<__half> {
  TWILL static u32 pack(float low, float high) {
    u32 word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
  }
  TWILL static u32 pack(__half low, __half high) { return __half_as_ushort(low) | u32(__half_as_ushort(high)) << 16; }
  TWILL static __half low(u32 word) { return __ushort_as_half(u16(word)); }
  TWILL static __half high(u32 word) { return __ushort_as_half(u16(word >> 16)); }
};
template <> struct pair_of<__nv_bfloat16> {
  TWILL static u32 pack(float low, float high) {
    u32 word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
  }
  TWILL static u32 pack(__nv_bfloat16 low, __nv_bfloat16 high) { return __bfloat16_as_ushort(low) | u32(__bfloat16_as_ushort(high)) << 16; }
  TWILL static __nv_bfloat16 low(u32 word) { return __ushort_as_bfloat16(u16(word)); }
  TWILL static __nv_bfloat16 high(u32 word) { return __ushort_as_bfloat16(u16(word >> 16)); }
};

template <typename T> struct is_half { static constexpr bool value = false; };
template <> struct is_half<__half> { static constexpr bool value = true; };
template <> struct is_half<__nv_bfloat16> { static constexpr bool value = true; };

// ---------------------------------------------------------------------------------------------------------------- tiles

/// A tile as a thread holds it. Numbers of 16 bits are kept in pairs where the layout pairs them, as wgmma reads them.
template <typename T, typename L, bool PACKED = is_half<T>::value && L::paired> struct tile {
  using type = T;
  using layout = L;
  T held[L::size];
  template <typename M> TWILL T operator[](element<M> e) const { return held[L::index(e.row_held, e.column_held)]; }
};
template <typename T, typename L> struct tile<T, L, true> {
  using type = T;
  using layout = L;
  u32 held[L::size / 2];
  template <typename M> TWILL T operator[](element<M> e) const {
    const int i = L::index(e.row_held, e.column_held);
    return i % 2 ? pair_of<T>::high(held[i / 2]) : pair_of<T>::low(held[i / 2]);
  }
};

/// A tile made element by element.
template <typename T, typename L, typename F> TWILL tile<T, L> each(F make) {
  tile<T, L> out;
  const auto at = [](int i) { return element<L>{L::row_held(i), L::column_held(i)}; };
  if constexpr (is_half<T>::value && L::paired) {
    repeat<L::size / 2>([&](int i) { out.held[i] = pair_of<T>::pack(make(at(2 * i)), make(at(2 * i + 1))); });
  } else {
    repeat<L::size>([&](int i) { out.held[i] = T(make(at(i))); });
  }
  return out;
}

/// Something done for each element that a thread holds, or for the first of EACH neighbours; of what several hold, by one.
template <typename L, int EACH = 1, typename F> TWILL void for_each(F act) {
  static_assert(L::size % EACH == 0 && L::columns_held % EACH == 0, "neighbours are held in whole parts of a row");
  if (!L::owns()) return;
  repeat<L::size / EACH>([&](int i) { act(element<L>{L::row_held(EACH * i), L::column_held(EACH * i)}); });
}

TWILL void touch(float &x) { asm volatile("" : "+f"(x)::"memory"); }
TWILL void touch(u32 &x) { asm volatile("" : "+r"(x)::"memory"); }
TWILL void touch(int &x) { asm volatile("" : "+r"(x)::"memory"); }

/// What asynchronous MMAs wrote or read is used, or written again, only after this.
template <typename T, typename L> TWILL void operand_fence(tile<T, L> &tile) {
  repeat<sizeof(tile.held) / sizeof(tile.held[0])>([&](int i) { touch(tile.held[i]); });
}

// ------------------------------------------------------------------------------------------------------------ arithmetic

TWILL float maximum(float a, float b) { return fmaxf(a, b); }
TWILL float minimum(float a, float b) { return fminf(a, b); }
TWILL double maximum(double a, double b) { return fmax(a, b); }
TWILL double minimum(double a, double b) { return fmin(a, b); }
TWILL __half maximum(__half a, __half b) { return __hmax(a, b); }
TWILL __half minimum(__half a, __half b) { return __hmin(a, b); }
TWILL __nv_bfloat16 maximum(__nv_bfloat16 a, __nv_bfloat16 b) { return __hmax(a, b); }
TWILL __nv_bfloat16 minimum(__nv_bfloat16 a, __nv_bfloat16 b) { return __hmin(a, b); }
template <typename T> TWILL T maximum(T a, T b) { return a > b ? a : b; }
template <typename T> TWILL T minimum(T a, T b) { return a < b ? a : b; }

/// Not a number where one of the two is not.
TWILL float maximum_nan(float a, float b) {
  float c;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
}
TWILL float minimum_nan(float a, float b) {
  float c;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
}

// The approximations that Triton's compiler chooses.
TWILL float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
TWILL float exp_of(float x) { return exp2_of(x * 1.44269504f); }
TWILL float divide(float a, float b) {
  float c;
  asm("div.full.ftz.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
}
template <typename T> TWILL T divide(T a, T b) { return T(divide(float(a), float(b))); }
TWILL double divide(double a, double b) { return a / b; }
/// By a number that many are divided by: of div.full, which scales each of them, only the reciprocal and the product, the same
/// up to |b| = 2^126. Beyond, the reciprocal keeps 22 bits, as it is made without ftz.
TWILL float divide_by_row(float a, float b) {
  float reciprocal;
  asm("rcp.approx.f32 %0, %1;" : "=f"(reciprocal) : "f"(b));
  return __fmul_rn(a, reciprocal);
}
TWILL float sqrt_of(float x) {
  float y;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// ------------------------------------------------------------------------------------------------------------ reductions

struct add {
  template <typename T> TWILL T operator()(T a, T b) const { return a + b; }
};
struct max {
  template <typename T> TWILL T operator()(T a, T b) const { return maximum(a, b); }
};
struct min {
  template <typename T> TWILL T operator()(T a, T b) const { return minimum(a, b); }
};

/// What a thread holds of each row of an accumulator, combined: even and odd columns by themselves until the end, for
/// shorter chains.
template <typename Op, typename T, int R, int C>
TWILL tile<T, accumulator_partials<R>> row_partials(const tile<T, accumulator<R, C>> &whole, Op combine) {
  using L = accumulator<R, C>;
  tile<T, accumulator_partials<R>> out;
  repeat<L::rows_held>([&](int r) {
    T even = whole[element<L>{r, 0}], odd = whole[element<L>{r, 1}];
    repeat<C / 8 - 1>([&](int c) {
      even = combine(even, whole[element<L>{r, 2 * c + 2}]);
      odd = combine(odd, whole[element<L>{r, 2 * c + 3}]);
    });
    out.held[r] = combine(even, odd);
  });
  return out;
}

/// The partials of the four threads that hold a row, combined.
template <typename Op, typename T, int R>
TWILL tile<T, accumulator_rows<R>> quad_all_reduce(const tile<T, accumulator_partials<R>> &partials, Op combine) {
  tile<T, accumulator_rows<R>> out;
  repeat<accumulator_rows<R>::size>([&](int r) {
    T value = partials.held[r];
    value = combine(value, __shfl_xor_sync(~0u, value, 1));
    out.held[r] = combine(value, __shfl_xor_sync(~0u, value, 2));
  });
  return out;
}
template <typename Op, typename T, int R, int C>
TWILL tile<T, accumulator_rows<R>> quad_all_reduce(const tile<T, accumulator<R, C>> &whole, Op combine) {
  return quad_all_reduce(row_partials(whole, combine), combine);
}

// ------------------------------------------------------------------------------------------------------- shared memory

/// Bytes of a line of a tile in shared memory: its rows are cut into panels of that width, the panels stand one after
/// another, and within eight lines the chunks of 16 bytes are permuted ("Shared Memory Matrix Layout", swizzling modes).
template <typename T, int C> TWILL constexpr int line_of() {
  constexpr int bytes = C * int(sizeof(T));
  return bytes % 128 == 0 ? 128 : bytes % 64 == 0 ? 64 : bytes % 32 == 0 ? 32 : bytes;
}

/// R x C elements in shared memory, or a part of such: of a buffer of BUFFER_ROWS rows, with lines of LINE bytes, from byte
/// FIRST_BYTE of a row on. A tile of one dimension has one row.
template <typename T, int R, int C, int BUFFER_ROWS = R, int LINE = line_of<T, C>(), int FIRST_BYTE = 0> struct smem_tile {
  using type = T;
  static constexpr int rows = R, columns = C, line = LINE, panel = BUFFER_ROWS * LINE, first_byte = FIRST_BYTE;
  static constexpr bool swizzled = R > 1 && line % 32 == 0 && line <= 128;
  /// Neighbours of a row are side by side.
  static constexpr bool along_rows = true;
  u32 start;
  TWILL u32 address(int row, int column) const {
    const int byte = FIRST_BYTE + column * int(sizeof(T));
    const u32 at = start + byte / line * panel + row * line + byte % line;
    return swizzled ? swizzle(at) : at;
  }
  /// 128 bytes: bits 4..6 with 7..9; 64: 4..5 with 7..8; 32: 4 with 7.
  TWILL static u32 swizzle(u32 at) { return at ^ ((at >> 3) & (line - 16)); }
  /// COUNT of its rows, of which the first is a multiple of eight, or of its columns.
  template <int FIRST, int COUNT> TWILL auto row_part() const { return smem_tile<T, COUNT, C, BUFFER_ROWS, LINE, FIRST_BYTE>{start + FIRST * line}; }
  template <int FIRST, int COUNT> TWILL auto column_part() const { return smem_tile<T, R, COUNT, BUFFER_ROWS, LINE, FIRST_BYTE + FIRST * int(sizeof(T))>{start}; }
};

template <typename T> TWILL void st_shared_element(u32 address, T value) {
  if constexpr (sizeof(T) == 8) asm volatile("st.shared.b64 [%0], %1;" ::"r"(address), "l"(*(const u64 *)&value) : "memory");
  if constexpr (sizeof(T) == 4) asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(*(const u32 *)&value) : "memory");
  if constexpr (sizeof(T) == 2) asm volatile("st.shared.b16 [%0], %1;" ::"r"(address), "h"(*(const u16 *)&value) : "memory");
  if constexpr (sizeof(T) == 1) asm volatile("st.shared.b8 [%0], %1;" ::"r"(address), "r"(u32(*(const u8 *)&value)) : "memory");
}
template <typename T> TWILL T ld_shared_element(u32 address) {
  u64 bits = 0;
  u32 word = 0;
  u16 half = 0;
  u8 byte = 0;
  if constexpr (sizeof(T) == 8) asm volatile("ld.shared.b64 %0, [%1];" : "=l"(bits) : "r"(address) : "memory");
  if constexpr (sizeof(T) == 4) asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
  if constexpr (sizeof(T) == 2) asm volatile("ld.shared.b16 %0, [%1];" : "=h"(half) : "r"(address) : "memory");
  if constexpr (sizeof(T) == 1) asm volatile("ld.shared.u8 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
  if constexpr (sizeof(T) == 8) return *(const T *)&bits;
  else if constexpr (sizeof(T) == 4) return *(const T *)&word;
  else if constexpr (sizeof(T) == 2) return *(const T *)&half;
  byte = u8(word);
  return *(const T *)&byte;
}

/// Columns of an accumulator; 0 of other layouts.
template <typename L> struct columns_of { static constexpr int value = 0; };
template <int R, int C> struct columns_of<accumulator<R, C>> { static constexpr int value = C; };

/// Writes a tile of one or two dimensions.
template <typename P, typename S, typename L> TWILL void st_shared(P to, const tile<S, L> &from) {
  using T = typename P::type;
  if (!L::owns()) return;
  const auto address = [&](int i) {
    const int row = L::row(L::row_held(i)), column = L::column(L::column_held(i));
    return P::rows > 1 ? to.address(row, column) : to.address(0, L::columns_held > 1 ? column : row);
  };
  if constexpr (is_half<T>::value && is_half<S>::value && L::paired) {
    repeat<L::size / 2>([&](int i) { st_shared_element<u32>(address(2 * i), from.held[i]); });
  } else if constexpr (sizeof(T) == 4 && sizeof(S) == 4 && L::paired) {
    // Of eight lines, each second one begins at its other half: neighbours would be stored to the same banks at once.
    constexpr bool by_halves = columns_of<L>::value % 32 == 0 && columns_of<L>::value > 0 && P::swizzled && P::line == 128;
    const bool is_second = by_halves && lane() / 4 % 2;
    repeat<L::size / 2>([&](int i) {
      const int other = by_halves ? 2 * (i ^ 4) : 2 * i;
      const S low = is_second ? from.held[other] : from.held[2 * i], high = is_second ? from.held[other + 1] : from.held[2 * i + 1];
      const u32 to_half = address(2 * i) ^ (is_second ? 64 : 0);
      asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(to_half), "r"(*(const u32 *)&low), "r"(*(const u32 *)&high) : "memory");
    });
  } else {
    repeat<L::size>([&](int i) { st_shared_element<T>(address(i), T(from[element<L>{L::row_held(i), L::column_held(i)}])); });
  }
}

/// Where the thread's 16 bytes of four 8 x 8 matrices are for ldmatrix and stmatrix: 16 rows x 16 columns of a tile.
template <typename P> struct matrices {
  static constexpr int size = int(sizeof(typename P::type));
  static_assert(size == 2, "elements of 16 bits");
  P tile;
  u32 own;
  TWILL explicit matrices(P in) : tile(in), own(P::swizzle(in.start + row() * P::line + column() * size)) {
    // Kept from loops' heads: four addresses would take four registers, where one and an exclusive or do.
    asm volatile("" : "+r"(own));
  }
  TWILL static int row() { return threadIdx.x % 128 / 32 * 16 + lane() % 16; }
  TWILL static int column() { return lane() / 16 * 8; }
  /// Those from a row and a column on.
  TWILL u32 at(int first_row, int first_column) const {
    const int byte = P::first_byte + first_column * size;
    if (!P::swizzled || byte % 32) return tile.address(first_row + row(), first_column + column());
    // Bits 5 and 6 are none of the thread's, so one swizzle does for the whole tile.
    return (own ^ u32(byte % P::line)) + byte / P::line * P::panel + first_row * P::line;
  }
};

/// Writes an accumulator of 16 bits by matrices ("stmatrix").
template <typename P, typename T, int R, int C> TWILL void stmatrix(P to, const tile<T, accumulator<R, C>> &from) {
  const matrices<P> lanes(to);
  repeat<R * C / 1024>([&](int part) {
    const int row = part / (C / 16) * 64, column = part % (C / 16) * 16;
    const u32 *w = from.held + row / 64 * (C / 4) + column / 16 * 4;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(lanes.at(row, column)), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]) : "memory");
  });
}

/// Two neighbours of 4 bytes.
template <typename T> TWILL void ld_shared_pair(u32 address, T &low, T &high) {
  u32 a, b;
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(address) : "memory");
  low = *(const T *)&a;
  high = *(const T *)&b;
}

/// Reads a tile.
template <typename T, typename L, typename P> TWILL tile<T, L> ld_shared(P from) {
  const auto address = [&](int i) {
    const int row = L::row(L::row_held(i)), column = L::column(L::column_held(i));
    return P::rows > 1 ? from.address(row, column) : from.address(0, L::columns_held > 1 ? column : row);
  };
  tile<T, L> out;
  if constexpr (is_half<T>::value && L::paired) {
    repeat<L::size / 2>([&](int i) { out.held[i] = ld_shared_element<u32>(address(2 * i)); });
  } else if constexpr (sizeof(T) == 4 && L::paired) {
    repeat<L::size / 2>([&](int i) { ld_shared_pair(address(2 * i), out.held[2 * i], out.held[2 * i + 1]); });
  } else {
    repeat<L::size>([&](int i) { out.held[i] = ld_shared_element<T>(address(i)); });
  }
  return out;
}

/// Reads a left operand by matrices ("ldmatrix").
template <typename P> TWILL auto ldmatrix(P from) {
  constexpr int R = P::rows, C = P::columns;
  const matrices<P> lanes(from);
  tile<typename P::type, accumulator<R, C>> out;
  repeat<R * C / 1024>([&](int part) {
    const int row = part / (C / 16) * 64, column = part % (C / 16) * 16;
    u32 *w = out.held + row / 64 * (C / 4) + column / 16 * 4;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "r"(lanes.at(row, column)) : "memory");
  });
  return out;
}

/// What threads wrote to shared memory becomes visible to TMA and the tensor core ("Async proxy").
TWILL void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ------------------------------------------------------------------------------------------------------------- barriers

TWILL void mbarrier_init(u32 barrier, int arrivals) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory"); }
TWILL void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

/// Waits until a barrier has completed the phase of this parity.
TWILL void mbarrier_wait(u32 barrier, u32 phase) {
  asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }" ::"r"(barrier), "r"(phase) : "memory");
}

/// One thread of every warp arrives.
TWILL void mbarrier_arrive(u32 barrier) {
  asm volatile("{ .reg .pred p; bar.warp.sync 0xffffffff; elect.sync _|p, 0xffffffff; @p mbarrier.arrive.shared::cta.b64 _, [%0]; }" ::"r"(barrier) : "memory");
}

/// The slot after this one of a ring of SLOTS, and its phase.
template <int SLOTS> TWILL void advance(u32 &slot) { slot = SLOTS & (SLOTS - 1) ? (slot == SLOTS - 1 ? 0 : slot + 1) : (slot + 1) & (SLOTS - 1); }
template <int SLOTS> TWILL void advance(u32 &slot, u32 &phase) {
  advance<SLOTS>(slot);
  phase ^= slot == 0;
}

// ------------------------------------------------------------------------------------------------------------------ TMA

TWILL void prefetch(const tensor_map &map) { asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory"); }

template <int RANK> struct coordinates {
  int at[RANK];
};
template <typename... I> TWILL coordinates<sizeof...(I)> at(I... index) { return {{int(index)...}}; }

TWILL void mbarrier_arrive_expect_tx(u32 barrier, u32 bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory"); }

TWILL void tma_load_box(u32 to, const tensor_map &map, coordinates<1> c, u32 barrier) {
  asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(to), "l"(&map), "r"(c.at[0]), "r"(barrier) : "memory");
}
TWILL void tma_load_box(u32 to, const tensor_map &map, coordinates<2> c, u32 barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(&map), "r"(c.at[1]), "r"(c.at[0]), "r"(barrier) : "memory");
}
TWILL void tma_load_box(u32 to, const tensor_map &map, coordinates<3> c, u32 barrier) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to), "l"(&map), "r"(c.at[2]), "r"(c.at[1]), "r"(c.at[0]), "r"(barrier) : "memory");
}
TWILL void tma_load_box(u32 to, const tensor_map &map, coordinates<4> c, u32 barrier) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(to), "l"(&map), "r"(c.at[3]), "r"(c.at[2]), "r"(c.at[1]), "r"(c.at[0]), "r"(barrier) : "memory");
}
TWILL void tma_store_box(const tensor_map &map, coordinates<1> c, u32 from) {
  asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%0, {%1}], [%2];" ::"l"(&map), "r"(c.at[0]), "r"(from) : "memory");
}
TWILL void tma_store_box(const tensor_map &map, coordinates<2> c, u32 from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(c.at[1]), "r"(c.at[0]), "r"(from) : "memory");
}
TWILL void tma_store_box(const tensor_map &map, coordinates<3> c, u32 from) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map), "r"(c.at[2]), "r"(c.at[1]), "r"(c.at[0]), "r"(from) : "memory");
}
TWILL void tma_store_box(const tensor_map &map, coordinates<4> c, u32 from) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(&map), "r"(c.at[3]), "r"(c.at[2]), "r"(c.at[1]), "r"(c.at[0]), "r"(from) : "memory");
}
TWILL void tma_reduce_add_box(const tensor_map &map, coordinates<1> c, u32 from) {
  asm volatile("cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%0, {%1}], [%2];" ::"l"(&map), "r"(c.at[0]), "r"(from) : "memory");
}
TWILL void tma_reduce_add_box(const tensor_map &map, coordinates<2> c, u32 from) {
  asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(c.at[1]), "r"(c.at[0]), "r"(from) : "memory");
}

/// Calls a function for each panel of a tile: its address, and the coordinates of its first element.
template <typename P, int RANK, typename F> TWILL void each_panel(P tile, coordinates<RANK> c, F act) {
  constexpr int size = sizeof(typename P::type), bytes = P::columns * size;
  static_assert(bytes % P::line == 0 && P::first_byte % P::line == 0, "TMA copies whole panels");
  repeat<bytes / P::line>([&](int panel) {
    act(tile.start + (P::first_byte / P::line + panel) * P::panel, c);
    c.at[RANK - 1] += P::line / size;
  });
}

/// Starts a copy from global to shared memory, which arrives at a barrier. By one thread.
template <typename P, int RANK> TWILL void tma_load(const tensor_map &map, coordinates<RANK> c, P to, u32 barrier) {
  mbarrier_arrive_expect_tx(barrier, P::rows * P::columns * sizeof(typename P::type));
  each_panel(to, c, [&](u32 panel, coordinates<RANK> at) { tma_load_box(panel, map, at, barrier); });
}

/// Starts a copy from shared to global memory, or an addition to it. By one thread, which can wait for its own.
template <typename P, int RANK> TWILL void tma_store(const tensor_map &map, coordinates<RANK> c, P from) {
  each_panel(from, c, [&](u32 panel, coordinates<RANK> at) { tma_store_box(map, at, panel); });
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
template <typename P, int RANK> TWILL void tma_reduce_add(const tensor_map &map, coordinates<RANK> c, P from) {
  each_panel(from, c, [&](u32 panel, coordinates<RANK> at) { tma_reduce_add_box(map, at, panel); });
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// Waits until at most LEFT of a thread's stores still read shared memory.
template <int LEFT> TWILL void tma_store_wait() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(LEFT) : "memory"); }

// ------------------------------------------------------------------------------------------- copies through pointers

/// Starts a copy of neighbours; zeros where there are none. 16 bytes pass the L1 cache by. What is smaller than 4 bytes is copied
/// at once.
template <int COUNT, typename T> TWILL void cp_async_elements(u32 to, const T *from, bool is_there) {
  constexpr int bytes = COUNT * int(sizeof(T));
  if constexpr (bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(is_there ? bytes : 0) : "memory");
  } else if constexpr (bytes >= 4) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(bytes), "r"(is_there ? bytes : 0) : "memory");
  } else {
    static_assert(COUNT == 1, "elements that are copied at once are copied one by one");
    st_shared_element<T>(to, is_there ? *from : T(0));
  }
}

/// Every thread arrives at a barrier when its copies are there ("cp.async.mbarrier.arrive").
template <typename T, int COUNT> TWILL void cp_async_mbarrier_arrive(u32 barrier) {
  if constexpr (COUNT * sizeof(T) >= 4) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
  } else {
    fence_proxy_async();
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
  }
}

// --------------------------------------------------------------------------------------------------------------- MMAs

TWILL void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TWILL void wgmma_commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT> TWILL void wgmma_wait_group() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory"); }

/// The instruction m64nNkK for operands of types A and B, K elements of which are 32 bytes; whether those in shared memory have
/// their own rows or columns side by side. The kernel's file has those that it uses.
template <int N, typename A, typename B, bool LEFT_ALONG_COLUMNS, bool RIGHT_ALONG_ROWS> struct instruction;

/// A tile in shared memory seen with rows and columns changed.
template <typename P> struct transposed {
  using type = typename P::type;
  static constexpr int rows = P::columns, columns = P::rows;
  static constexpr bool along_rows = false;
  P tile;
};
template <typename P> TWILL transposed<P> transpose(P tile) { return {tile}; }

/// An address without what says whose shared memory it is in, which those of a cluster's CTAs begin with.
TWILL u32 within_cta(u32 address) {
#ifdef TWILL_CLUSTER
  return address & 0x3ffff;
#else
  return address;
#endif
}

/// A matrix in shared memory ("Matrix Descriptor Format"): address, and strides between panels and eight lines, by 16 bytes.
template <typename P> TWILL u64 matrix(P tile, int byte) {
  constexpr u32 swizzle = P::line == 128 ? 1 : P::line == 64 ? 2 : 3;
  static_assert(P::swizzled, "the tensor core reads lines of 128, 64 or 32 bytes");
  const u32 low = (within_cta(tile.start) >> 4) + (u32(P::panel >> 4) << 16);
  constexpr u64 high = swizzle << 30 | u32(P::line * 8 >> 4);
  // One addition of 64 bits from its neighbour, which ptxas makes ahead of the MMA.
  return (high << 32 | low) + (byte >> 4);
}

/// How far in a tile an element is, where groups of eight lines begin alike.
template <typename P> TWILL constexpr int byte_of(int row, int column) {
  const int byte = P::first_byte + column * int(sizeof(typename P::type));
  return byte / P::line * P::panel + byte % P::line + row * P::line;
}

/// The part of an operand from a row and a column on.
template <typename P> TWILL u64 part_of(P operand, int row, int column) { return matrix(operand, byte_of<P>(row, column)); }
template <typename P> TWILL u64 part_of(transposed<P> operand, int row, int column) { return matrix(operand.tile, byte_of<P>(column, row)); }

/// The registers of 64 rows of a result from this row and column on: a number in each, or two of 16 bits.
template <typename D, int R, int C> TWILL auto *part_of_sum(tile<D, accumulator<R, C>> &sum, int row, int column) {
  return sum.held + (row * C / 64 + column) / (is_half<D>::value ? 4 : 2);
}

/// Starts sum = left x right, or sum += left x right; one group of MMAs for wgmma_wait_group.
template <typename D, int R, int C, typename Left, typename Right>
TWILL void wgmma(tile<D, accumulator<R, C>> &sum, Left left, Right right, bool adds) {
  constexpr int width = C < 256 ? C : 256;
  using one = instruction<width, typename Left::type, typename Right::type, !Left::along_rows, Right::along_rows>;
  constexpr int each = 32 / int(sizeof(typename Right::type)), depth = Right::rows / each, across = C / width;
  static_assert(Right::rows % each == 0, "an MMA takes 32 bytes of each row");
  wgmma_fence();
  repeat<R / 64 * across * depth>([&](int part) {
    const int k = part % depth * each, column = part / depth % across * width, row = part / depth / across * 64;
    one::issue(part_of_sum(sum, row, column), part_of(left, row, k), part_of(right, k, column), adds || k > 0);
  });
  wgmma_commit_group();
}

/// The same with the left operand in registers.
template <typename D, int R, int C, int K, typename T, typename Right>
TWILL void wgmma(tile<D, accumulator<R, C>> &sum, const tile<T, accumulator<R, K>> &left, Right right, bool adds) {
  constexpr int width = C < 256 ? C : 256;
  using one = instruction<width, T, typename Right::type, false, Right::along_rows>;
  wgmma_fence();
  static_assert(K % 16 == 0, "an MMA takes 16 elements of each row");
  constexpr int depth = K / 16, across = C / width;
  repeat<R / 64 * across * depth>([&](int part) {
    const int k = part % depth * 16, column = part / depth % across * width, row = part / depth / across * 64;
    one::issue(part_of_sum(sum, row, column), left.held + row / 64 * (K / 4) + k / 4, part_of(right, k, column), adds || k > 0);
  });
  wgmma_commit_group();
}

}  // namespace twill
