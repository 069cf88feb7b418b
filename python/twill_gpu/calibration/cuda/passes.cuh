// Passes of a warp group over a tile of 64 x N numbers in its registers. Each pass works on what the one before it left, so that
// none can be left out, done once for all, or begun too early; what makes it so is done by naming registers anew.
#pragma once

#include "measure.cuh"

namespace twill {

/// The row, of the two that a thread holds, of a number that it holds.
template <int N> TWILL constexpr int row_of(int i) { return accumulator<64, N>::row_held(i); }

/// x = x * a - b, with a factor of the kernel and a number of each row.
template <int N> struct fma_pass {
  float scale, shift[2];
  TWILL fma_pass(given g) : scale(g.data[0] * 0.001f + 1), shift{g.data[thread()], g.data[thread() + 128]} {}
  TWILL void round(scores<N> &x) {
    repeat<N / 2>([&](int i) { x.held[i] = fmaf(x.held[i], scale, -shift[row_of<N>(i)]); });
  }
  TWILL float end() { return 0; }
};

/// x = x * a, with a factor of each row.
template <int N> struct rescale_pass {
  float scale[2];
  TWILL rescale_pass(given g) : scale{g.data[thread()] * 0.001f + 1, g.data[thread() + 128] * 0.001f + 1} {}
  TWILL void round(scores<N> &x) {
    repeat<N / 2>([&](int i) { x.held[i] *= scale[row_of<N>(i)]; });
  }
  TWILL float end() { return 0; }
};

/// x = max(x, a), with a number of each row.
template <int N> struct maximum_pass {
  float low[2];
  TWILL maximum_pass(given g) : low{g.data[thread()] - 100, g.data[thread() + 128] - 100} {}
  TWILL void round(scores<N> &x) {
    low[0] += 0.25f;
    low[1] += 0.25f;
    repeat<N / 2>([&](int i) { x.held[i] = maximum(x.held[i], low[row_of<N>(i)]); });
  }
  TWILL float end() { return 0; }
};

/// x = 2^x
template <int N> struct exp2_pass {
  TWILL exp2_pass(given) {}
  TWILL void round(scores<N> &x) {
    repeat<N / 2>([&](int i) { x.held[i] = exp2_of(x.held[i]); });
  }
  TWILL float end() { return 0; }
};

/// f32 to f16, two to a register; these bits are the next pass's numbers.
template <int N> struct convert_pass {
  TWILL convert_pass(given) {}
  TWILL void round(scores<N> &x) {
    repeat<N / 4>([&](int i) { x.held[2 * i] = __uint_as_float(pair_of<__half>::pack(x.held[2 * i], x.held[2 * i + 1])); });
  }
  TWILL float end() { return 0; }
};

/// 2^(x * a - b), with a factor of the kernel and a number of each row.
template <int N> struct scaled_exp2_pass {
  float scale, shift[2];
  TWILL scaled_exp2_pass(given g) : scale(g.data[0] * 0.001f + 1), shift{g.data[thread()], g.data[thread() + 128]} {}
  TWILL void round(scores<N> &x) {
    repeat<N / 2>([&](int i) { x.held[i] = exp2_of(fmaf(x.held[i], scale, -shift[row_of<N>(i)])); });
  }
  TWILL float end() { return 0; }
};

/// The numbers at which combining rows begins: even and odd columns of both rows.
template <int N> TWILL void begin_rows_with(scores<N> &x, const float (&number)[2]) {
  repeat<2>([&](int r) { x.held[2 * r] = x.held[2 * r + 1] = number[r]; });
}

/// Row maxima, with those of the rounds before; WHOLE: over all four threads of a row.
template <int N, bool WHOLE> struct row_maximum_pass {
  float top[2];
  TWILL row_maximum_pass(given) : top{-1e30f, -1e30f} {}
  TWILL void round(scores<N> &x) {
    const auto partials = row_partials(x, max{});
    repeat<2>([&](int r) {
      if constexpr (WHOLE) {
        top[r] = quad_all_reduce(partials, max{}).held[r];
      } else {
        top[r] = partials.held[r];
      }
    });
    begin_rows_with(x, top);
  }
  TWILL float end() { return top[0] + top[1]; }
};

/// Row sums, with those of the rounds before.
template <int N, bool WHOLE> struct row_sum_pass {
  float sum[2];
  TWILL row_sum_pass(given) : sum{0, 0} {}
  TWILL void round(scores<N> &x) {
    const auto partials = row_partials(x, add{});
    repeat<2>([&](int r) {
      if constexpr (WHOLE) {
        sum[r] = quad_all_reduce(partials, add{}).held[r];
      } else {
        sum[r] = partials.held[r];
      }
    });
    begin_rows_with(x, sum);
  }
  TWILL float end() { return sum[0] + sum[1]; }
};

/// A step of softmax: row maxima, 2^(x * a - maximum), row sums (WHOLE: over all four threads of a row), f32 to f16.
template <int N, bool WHOLE> struct softmax_pass {
  float scale, top[2], sum[2];
  i64 times = 0;
  TWILL softmax_pass(given g) : scale(g.data[0] * 0.001f + 1), top{-1e30f, -1e30f}, sum{0, 0} {}
  TWILL void round(scores<N> &x) {
    const auto highest = quad_all_reduce(x, max{});
    float shift[2], factor[2];
    repeat<2>([&](int r) {
      const float higher = maximum(top[r], highest.held[r]);
      factor[r] = exp2_of((top[r] - higher) * scale);
      shift[r] = higher * scale;
      top[r] = higher;
    });
    scores<N> e;
    repeat<N / 2>([&](int i) { e.held[i] = exp2_of(fmaf(x.held[i], scale, -shift[row_of<N>(i)])); });
    const auto partials = row_partials(e, add{});
    repeat<2>([&](int r) {
      if constexpr (WHOLE) {
        sum[r] = sum[r] * factor[r] + quad_all_reduce(partials, add{}).held[r];
      } else {
        sum[r] = sum[r] * factor[r] + partials.held[r];
      }
    });
    // The bits of the results are half of the next scores; the other half are those of now, in other places.
    repeat<N / 4>([&](int i) {
      x.held[2 * i] = x.held[2 * i + 1];
      x.held[2 * i + 1] = __uint_as_float(pair_of<__half>::pack(e.held[2 * i], e.held[2 * i + 1]));
    });
    begin_rows_with(x, sum);
    // Nothing moves over a reading of the clock: maxima of the next step do not begin among the exponentials of this one.
    times += now();
  }
  TWILL float end() { return sum[0] + sum[1] + float(times); }
};

template <int N> using row_maximum = row_maximum_pass<N, true>;
template <int N> using row_maximum_in_thread = row_maximum_pass<N, false>;
template <int N> using row_sum = row_sum_pass<N, true>;
template <int N> using row_sum_in_thread = row_sum_pass<N, false>;
template <int N> using softmax = softmax_pass<N, false>;
template <int N> using softmax_whole_sums = softmax_pass<N, true>;

/// Two passes a round, then four: half of what those take more is a pass without the loop.
template <template <int> typename Pass, int N> TWILL void time_pass(given g) {
  scores<N> x;
  fetch(x, g);
  Pass<N> pass(g);
  time_rounds<8>(g.out, [&](int) { repeat<2>([&](int) { pass.round(x); }); });
  time_rounds<8>(g.out + SERIES, [&](int) { repeat<4>([&](int) { pass.round(x); }); });
  keep(g, pass.end() + sum_of(x));
}

}  // namespace twill
