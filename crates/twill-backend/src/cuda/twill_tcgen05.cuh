// Tile primitives of kernels whose MMAs leave their results in tensor memory, next to those of twill.cuh. For Blackwell
// (sm_100a); PTX ISA 8.7 and later, "TensorCore 5th Generation Family Instructions", whose sections are named here.
#pragma once

#include "twill.cuh"

namespace twill {

// ------------------------------------------------------------------------------------------- layouts of tiles in threads
//
// The four warps of a group reach a quarter of the lanes each. A tile of 128 rows has a row in each lane, and a thread holds a
// row. A tile of 64 rows has them in the first 16 of every 32 lanes ("Data Path Layout Organization", layouts D and F); two
// threads hold a row, each one half of its columns.

template <int R> struct tensor_rows {
  static_assert(R == 64 || R == 128, "MMAs have 64 or 128 rows");
  static constexpr int halves = 128 / R, rows_held = 1, columns_held = 1, size = 1;
  static constexpr bool paired = false;
  TWILL static constexpr int index(int, int) { return 0; }
  TWILL static constexpr int row_held(int) { return 0; }
  TWILL static constexpr int column_held(int) { return 0; }
  TWILL static int row(int) { return halves == 1 ? threadIdx.x % 128 : threadIdx.x % 128 / 32 * 16 + lane() % 16; }
  TWILL static int column(int) { return 0; }
  TWILL static bool owns() { return halves == 1 || lane() < 16; }
};

/// A value for each column of a tile of R rows.
template <int R, int C> struct tensor_columns {
  static constexpr int rows_held = 1, columns_held = C / tensor_rows<R>::halves, size = columns_held;
  static constexpr bool paired = true;
  TWILL static constexpr int index(int, int c) { return c; }
  TWILL static constexpr int row_held(int) { return 0; }
  TWILL static constexpr int column_held(int i) { return i; }
  TWILL static int row(int) { return 0; }
  TWILL static int column(int c) { return tensor_rows<R>::halves == 1 ? c : lane() / 16 * columns_held + c; }
  TWILL static bool owns() { return tensor_rows<R>::row(0) == 0; }
};

template <int R, int C> struct tensor_tile : tensor_columns<R, C> {
  TWILL static int row(int) { return tensor_rows<R>::row(0); }
  TWILL static bool owns() { return true; }
};

template <int R, int C> struct width_of<tensor_tile<R, C>> { static constexpr int value = C; };

/// The elements of each row, combined: every fourth by itself until the end, for shorter chains.
template <typename Op, typename T, int R, int C>
TWILL tile<T, tensor_rows<R>> quad_all_reduce(const tile<T, tensor_tile<R, C>> &whole, Op combine) {
  using L = tensor_tile<R, C>;
  T part[4];
  repeat<4>([&](int k) { part[k] = whole[element<L>{0, k}]; });
  repeat<L::size - 4>([&](int c) { part[c % 4] = combine(part[c % 4], whole[element<L>{0, c + 4}]); });
  tile<T, tensor_rows<R>> out;
  out.held[0] = combine(combine(part[0], part[1]), combine(part[2], part[3]));
  if constexpr (tensor_rows<R>::halves == 2) out.held[0] = combine(out.held[0], __shfl_xor_sync(~0u, out.held[0], 16));
  return out;
}

// ------------------------------------------------------------------------------------- shared memory, 16 bytes at a time

TWILL u32 word_of(float x) { return __float_as_uint(x); }
TWILL u32 word_of(int x) { return u32(x); }
TWILL u32 word_of(u32 x) { return x; }

/// Four neighbouring elements of a byte each.
template <typename T, typename S> TWILL u32 bytes_of(const S *x) {
  u32 word = 0;
  repeat<4>([&](int k) { word |= (u32(T(x[k])) & 255) << 8 * k; });
  return word;
}

/// Whether elements of type T that a thread holds side by side can be copied 16 bytes at a time, to or from shared memory.
template <typename P, typename T, typename S, typename L> TWILL constexpr bool copies_whole() {
  constexpr int neighbours = 16 / int(sizeof(T));
  const bool is_same = sizeof(T) == 4 ? sizeof(S) == 4 : sizeof(T) == 2 ? is_half<T>::value && is_half<S>::value : sizeof(T) == 1;
  return is_same && L::columns_held % neighbours == 0 && P::line % 16 == 0;
}

/// Where the neighbours from the i-th element that a thread holds are.
template <typename L, typename P> TWILL u32 vector_at(P tile, int i) {
  return tile.address(P::rows > 1 ? L::row(0) : 0, L::column(i));
}

/// Writes a tile that is held in rows.
template <typename P, typename S, typename L> TWILL void st_shared_v4(P to, const tile<S, L> &from) {
  using T = typename P::type;
  if constexpr (!copies_whole<P, T, S, L>()) {
    st_shared(to, from);
  } else {
    if (!L::owns()) return;
    constexpr int neighbours = 16 / int(sizeof(T));
    repeat<L::size / neighbours>([&](int vector) {
      u32 w[4];
      repeat<4>([&](int k) {
        if constexpr (sizeof(T) == 1) w[k] = bytes_of<T>(from.held + vector * 16 + k * 4);
        else w[k] = word_of(from.held[vector * 4 + k]);
      });
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(vector_at<L>(to, vector * neighbours)), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]) : "memory");
    });
  }
}

/// Reads a tile that is to be held in rows.
template <typename T, typename L, typename P> TWILL tile<T, L> ld_shared_v4(P from) {
  if constexpr (!copies_whole<P, T, T, L>()) {
    return ld_shared<T, L>(from);
  } else {
    constexpr int neighbours = 16 / int(sizeof(T));
    tile<T, L> out;
    repeat<L::size / neighbours>([&](int vector) {
      u32 w[4];
      asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "r"(vector_at<L>(from, vector * neighbours)) : "memory");
      repeat<4>([&](int k) {
        if constexpr (sizeof(T) == 1) repeat<4>([&](int b) { out.held[vector * 16 + k * 4 + b] = T(w[k] >> 8 * b); });
        else if constexpr (sizeof(out.held[0]) == sizeof(float) && !is_half<T>::value) out.held[vector * 4 + k] = *(const T *)&w[k];
        else out.held[vector * 4 + k] = w[k];
      });
    });
    return out;
  }
}

// -------------------------------------------------------------------------------------------------------- tensor memory

/// Takes columns of tensor memory, a power of two from 32 on, and leaves at `at` in shared memory where they begin
/// ("tcgen05.alloc"). By one warp; it waits until another CTA of the multiprocessor has given enough back.
template <int COLUMNS> TWILL void tmem_alloc(u32 at) {
  __syncwarp();
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(at), "n"(COLUMNS) : "memory");
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
}

/// Gives them back, by the same warp.
template <int COLUMNS> TWILL void tmem_dealloc(u32 at) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(ld_shared_element<u32>(at)), "n"(COLUMNS) : "memory");
}

/// What threads and the tensor core did to tensor memory before one side of a barrier is seen after its other side
/// ("tcgen05.fence").
TWILL void tensor_fence_before() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
TWILL void tensor_fence_after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }

/// All threads of the CTA wait for each other.
TWILL void cta_sync() {
  tensor_fence_before();
  __syncthreads();
  tensor_fence_after();
}

/// The same as without tensor memory, and orders what happens there.
TWILL void mbarrier_wait_tensor(u32 barrier, u32 phase) {
  mbarrier_wait(barrier, phase);
  tensor_fence_after();
}
TWILL void mbarrier_arrive_tensor(u32 barrier) {
  tensor_fence_before();
  mbarrier_arrive(barrier);
}

/// R x C elements in tensor memory, from a column of 32 bits on. Elements of 16 bits, which only left operands have, are packed.
template <typename T, int R, int C> struct tmem_tile {
  static_assert(sizeof(T) == 4 || is_half<T>::value, "tensor memory holds results, and operands of 16 bits");
  static constexpr int words = C * int(sizeof(T)) / 4;
  u32 start;
  template <int FIRST, int COUNT> TWILL tmem_tile<T, R, COUNT> column_part() const {
    static_assert(FIRST * sizeof(T) % 4 == 0, "a part begins with a column of 32 bits");
    return {start + FIRST * int(sizeof(T)) / 4};
  }
};

/// Lanes stand in the upper half of an address: those of this warp.
TWILL u32 own_lanes(u32 start) { return start + (threadIdx.x / 32 % 4 << 21); }

/// Loads or stores N words of each thread ("tcgen05.ld", "tcgen05.st"): a lane to a thread, or 16 lanes to 32 threads, of which
/// the upper half has what is HALF columns further on.
template <int N> struct tensor_move;

#define TWILL_NAMES_4 "%0, %1, %2, %3"
#define TWILL_NAMES_8 TWILL_NAMES_4 ", %4, %5, %6, %7"
#define TWILL_NAMES_16 TWILL_NAMES_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define TWILL_NAMES_32 TWILL_NAMES_16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TWILL_WORDS_4(as, w) as((w)[0]), as((w)[1]), as((w)[2]), as((w)[3])
#define TWILL_WORDS_8(as, w) TWILL_WORDS_4(as, w), TWILL_WORDS_4(as, (w) + 4)
#define TWILL_WORDS_16(as, w) TWILL_WORDS_8(as, w), TWILL_WORDS_8(as, (w) + 8)
#define TWILL_WORDS_32(as, w) TWILL_WORDS_16(as, w), TWILL_WORDS_16(as, (w) + 16)
#define TWILL_TENSOR_MOVE(N, AFTER)                                                                                               \
  template <> struct tensor_move<N> {                                                                                             \
    template <int HALF> TWILL static void load(u32 *w, u32 at) {                                                                  \
      if constexpr (HALF == 0)                                                                                                    \
        asm volatile("tcgen05.ld.sync.aligned.32x32b.x" #N ".b32 {" TWILL_NAMES_##N "}, [%" #N "];"                               \
                     : TWILL_WORDS_##N("=r", w) : "r"(at) : "memory");                                                            \
      else                                                                                                                        \
        asm volatile("tcgen05.ld.sync.aligned.16x32bx2.x" #N ".b32 {" TWILL_NAMES_##N "}, [%" #N "], %" #AFTER ";"                \
                     : TWILL_WORDS_##N("=r", w) : "r"(at), "n"(HALF) : "memory");                                                 \
    }                                                                                                                             \
    template <int HALF> TWILL static void store(const u32 *w, u32 at) {                                                           \
      if constexpr (HALF == 0)                                                                                                    \
        asm volatile("tcgen05.st.sync.aligned.32x32b.x" #N ".b32 [%" #N "], {" TWILL_NAMES_##N "};"                               \
                     ::TWILL_WORDS_##N("r", w), "r"(at) : "memory");                                                              \
      else                                                                                                                        \
        asm volatile("tcgen05.st.sync.aligned.16x32bx2.x" #N ".b32 [%" #N "], %" #AFTER ", {" TWILL_NAMES_##N "};"                \
                     ::TWILL_WORDS_##N("r", w), "r"(at), "n"(HALF) : "memory");                                                   \
    }                                                                                                                             \
  };
TWILL_TENSOR_MOVE(4, 5)
TWILL_TENSOR_MOVE(8, 9)
TWILL_TENSOR_MOVE(16, 17)
TWILL_TENSOR_MOVE(32, 33)

/// Calls a function with each stretch of N words, by its first word.
template <int WORDS, typename F> TWILL void each_stretch(F act) {
  static_assert(WORDS % 4 == 0, "a row has a multiple of 16 bytes in each of its threads");
  repeat<WORDS / 32>([&](int k) { act(tensor_move<32>{}, k * 32); });
  if constexpr (WORDS % 32 >= 16) act(tensor_move<16>{}, WORDS / 32 * 32);
  if constexpr (WORDS % 16 >= 8) act(tensor_move<8>{}, WORDS / 16 * 16);
  if constexpr (WORDS % 8 >= 4) act(tensor_move<4>{}, WORDS / 8 * 8);
}

/// Reads a tile. By all threads of a group, as writing.
template <typename T, int R, int C> TWILL tile<T, tensor_tile<R, C>> tmem_load(tmem_tile<T, R, C> from) {
  constexpr int halves = tensor_rows<R>::halves, words = from.words / halves, half = halves == 2 ? words : 0;
  const u32 at = own_lanes(from.start);
  u32 w[words];
  each_stretch<words>([&](auto move, int first) { move.template load<half>(w + first, at + first); });
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
  tile<T, tensor_tile<R, C>> out;
  // Only now are they there.
  repeat<words>([&](int k) {
    touch(w[k]);
    if constexpr (sizeof(T) == 4) out.held[k] = *(const T *)&w[k];
    else out.held[k] = w[k];
  });
  return out;
}

/// Writes a tile, and waits until it is there.
template <typename T, int R, int C> TWILL void tmem_store(tmem_tile<T, R, C> to, const tile<T, tensor_tile<R, C>> &from) {
  constexpr int halves = tensor_rows<R>::halves, words = to.words / halves, half = halves == 2 ? words : 0;
  const u32 at = own_lanes(to.start);
  u32 w[words];
  repeat<words>([&](int k) { w[k] = word_of(from.held[k]); });
  each_stretch<words>([&](auto move, int first) { move.template store<half>(w + first, at + first); });
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}

// --------------------------------------------------------------------------------------------------------------- MMAs

template <typename T> struct format_of;
template <> struct format_of<__half> { static constexpr u32 value = 0; };
template <> struct format_of<__nv_bfloat16> { static constexpr u32 value = 1; };

/// What an MMA takes ("Instruction descriptor"): results of 32 bits, types of operands, which of them have not their
/// depth side by side, columns and rows.
template <typename T, int M, int N, bool LEFT_TRANSPOSED, bool RIGHT_TRANSPOSED> TWILL constexpr u32 instruction_of() {
  static_assert(N % (M == 64 ? 8 : 16) == 0 && N <= 256, "an MMA has a multiple of 16 columns, of 8 for 64 rows");
  return 1u << 4 | format_of<T>::value << 7 | format_of<T>::value << 10 | u32(LEFT_TRANSPOSED) << 15 | u32(RIGHT_TRANSPOSED) << 16
         | u32(N >> 3) << 17 | u32(M >> 4) << 24;
}

/// A matrix in shared memory ("Shared memory descriptor"): address, and strides by 16 bytes between eight lines, and between
/// panels where what is side by side is not the depth.
template <bool ALONG_DEPTH, typename P> TWILL u64 tensor_matrix(P tile, int byte) {
  constexpr u32 swizzle = P::line == 128 ? 2 : P::line == 64 ? 4 : 6;
  static_assert(P::swizzled, "the tensor core reads lines of 128, 64 or 32 bytes");
  const u32 low = (tile.start >> 4) + (ALONG_DEPTH ? 0 : u32(P::panel >> 4) << 16);
  constexpr u64 high = swizzle << 29 | 1u << 14 | u32(P::line * 8 >> 4);
  return (high << 32 | low) + (byte >> 4);
}

template <typename P> TWILL u64 left_part(P left, int k) { return tensor_matrix<true>(left, byte_of<P>(0, k)); }
template <typename P> TWILL u64 left_part(transposed<P> left, int k) { return tensor_matrix<false>(left.tile, byte_of<P>(k, 0)); }
template <typename P> TWILL u64 right_part(P right, int column, int k) { return tensor_matrix<false>(right, byte_of<P>(k, column)); }
template <typename P> TWILL u64 right_part(transposed<P> right, int column, int k) { return tensor_matrix<true>(right.tile, byte_of<P>(column, k)); }

TWILL void tcgen05_mma_one(u32 to, u64 left, u64 right, u32 instruction, bool adds) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(to), "l"(left), "l"(right), "r"(instruction), "r"(u32(adds)) : "memory");
}
/// The same with the left operand in tensor memory.
TWILL void tcgen05_mma_one(u32 to, u32 left, u64 right, u32 instruction, bool adds) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p; }" ::"r"(to), "r"(left), "l"(right), "r"(instruction), "r"(u32(adds)) : "memory");
}

/// A left operand in shared memory, or in tensor memory.
template <typename P> struct left_operand {
  static constexpr int rows = P::rows, depth = P::columns;
  static constexpr bool transposed = !P::along_rows;
  TWILL static u64 part(P left, int k) { return left_part(left, k); }
};
template <typename T, int R, int C> struct left_operand<tmem_tile<T, R, C>> {
  static constexpr int rows = R, depth = C;
  static constexpr bool transposed = false;
  TWILL static u32 part(tmem_tile<T, R, C> left, int k) { return left.start + k / 2; }
};

/// Starts sum = left x right, or sum += left x right. By one thread, the elected.
template <int R, int C, typename Left, typename Right>
TWILL void tcgen05_mma(tmem_tile<float, R, C> sum, Left left, Right right, bool adds) {
  constexpr int width = C < 256 ? C : 256, depth = Right::rows / 16;
  static_assert(left_operand<Left>::rows == R && left_operand<Left>::depth == Right::rows && Right::columns == C, "the operands fit the result");
  constexpr u32 instruction = instruction_of<typename Right::type, R, width, left_operand<Left>::transposed, Right::along_rows>();
  repeat<C / width * depth>([&](int part) {
    const int k = part % depth * 16, column = part / depth * width;
    tcgen05_mma_one(sum.start + column, left_operand<Left>::part(left, k), right_part(right, column, k), instruction, adds || k > 0);
  });
}

/// A barrier is signalled when all MMAs that this thread has started are done ("tcgen05.commit").
TWILL void tcgen05_commit(u32 barrier) { asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier) : "memory"); }

/// Waits for all MMAs that a warp has started, and so for what they signal. By a barrier that nothing else uses.
TWILL void tcgen05_wait_all(u32 barrier) {
  if (elected()) tcgen05_commit(barrier);
  mbarrier_wait_tensor(barrier, 0);
}

}  // namespace twill
