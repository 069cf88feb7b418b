// Runs the GEMM of examples/gemm_tma.py from C++: C = A · Bᵀ of random numbers, compared with sums in float64.
//
//     gemm M N K
//
// Exit status 0 if the result is right, 1 if it is not, or if something failed.

#include "kernel.h"

#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int SAMPLES = 4096, WARM_UP = 3, LAUNCHES = 20;

void check(cudaError_t error, const char *what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

/// Random numbers ("splitmix64").
struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  /// From -1 to 1, in steps that float16 has.
  float number() { return (int(next() >> 53) - 1024) / 1024.0f; }
};

/// A row-major matrix of float16, on the CPU and on the GPU.
struct Matrix {
  struct Free {
    void operator()(void *data) const { cudaFree(data); }
  };
  long long rows, columns;
  std::vector<__half> elements;
  std::unique_ptr<void, Free> gpu;

  Matrix(long long rows, long long columns) : rows(rows), columns(columns), elements(rows * columns) {
    void *data = nullptr;
    check(cudaMalloc(&data, bytes()), "memory of the GPU");
    gpu.reset(data);
  }
  size_t bytes() const { return elements.size() * sizeof(__half); }
  double at(long long row, long long column) const { return __half2float(elements[row * columns + column]); }
  twill_tensor tensor() const { return {gpu.get(), {rows, columns}, {columns, 1}}; }

  void fill(Random &random) {
    for (__half &element : elements) element = __float2half(random.number());
    check(cudaMemcpy(gpu.get(), elements.data(), bytes(), cudaMemcpyHostToDevice), "copy to the GPU");
  }
  /// Elements that are not written stay NaN.
  void clear() { check(cudaMemset(gpu.get(), 0xff, bytes()), "memory of the GPU"); }
  void fetch() { check(cudaMemcpy(elements.data(), gpu.get(), bytes(), cudaMemcpyDeviceToHost), "the kernel"); }
};

struct Errors {
  double largest = 0, part = 0;
  bool right = true;
};

/// Compares some elements with float64: a float16 of the sum, and what float32 may lose on the way.
Errors compare(const Matrix &a, const Matrix &b, const Matrix &c, Random &random) {
  Errors errors;
  for (const __half &element : c.elements) errors.right &= std::isfinite(__half2float(element));
  for (int k = 0; k < SAMPLES; k++) {
    const long long row = k ? random.next() % c.rows : c.rows - 1, column = k ? random.next() % c.columns : c.columns - 1;
    double wanted = 0, sizes = 0;
    for (long long i = 0; i < a.columns; i++) {
      const double product = a.at(row, i) * b.at(column, i);
      wanted += product;
      sizes += std::abs(product);
    }
    const double error = std::abs(c.at(row, column) - wanted);
    const double allowed = std::ldexp(std::abs(wanted), -10) + std::ldexp(sizes, -16) + std::ldexp(1.0, -24);
    errors.right &= error <= allowed;
    errors.largest = std::max(errors.largest, error);
    errors.part = std::max(errors.part, error / allowed);
  }
  return errors;
}

bool run(long long m, long long n, long long k) {
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found != cudaSuccess) throw std::runtime_error(std::string("no GPU: ") + cudaGetErrorString(found));

  Random random{1};
  Matrix a(m, k), b(n, k), c(m, n);
  a.fill(random);
  b.fill(random);
  c.clear();
  const twill_tensor a_tensor = a.tensor(), b_tensor = b.tensor(), c_tensor = c.tensor();
  const auto launch = [&] {
    const char *why = gemm_tma_launch(&a_tensor, &b_tensor, &c_tensor, int(k), int((m + BLOCK_M - 1) / BLOCK_M),
                                      int((n + BLOCK_N - 1) / BLOCK_N), 1, nullptr);
    if (why) throw std::runtime_error(why);
  };
  launch();
  c.fetch();
  const Errors errors = compare(a, b, c, random);

  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "an event");
  check(cudaEventCreate(&end), "an event");
  for (int i = 0; i < WARM_UP; i++) launch();
  check(cudaEventRecord(begin), "an event");
  for (int i = 0; i < LAUNCHES; i++) launch();
  check(cudaEventRecord(end), "an event");
  check(cudaEventSynchronize(end), "the kernel");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin, end), "an event");

  std::printf("gemm_tma %lld x %lld x %lld: %s, largest error %.3g, %.2f of what float16 allows, %.1f TFLOP/s\n", m, n, k,
              errors.right ? "right" : "WRONG", errors.largest, errors.part,
              2e-9 * double(m) * double(n) * double(k) * LAUNCHES / milliseconds);
  return errors.right;
}

/// A size of the command line.
long long size_of(const char *text) {
  char *end = nullptr;
  const long long size = std::strtoll(text, &end, 10);
  if (*text == 0 || *end != 0 || size < 1 || size > 1 << 20)
    throw std::runtime_error(std::string("sizes are whole numbers from 1 to 1048576, not ") + text);
  return size;
}

}  // namespace

int main(int count, char **arguments) {
  if (count != 4) {
    std::fprintf(stderr, "usage: gemm M N K\n");
    return 1;
  }
  try {
    return run(size_of(arguments[1]), size_of(arguments[2]), size_of(arguments[3])) ? 0 : 1;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "gemm: %s\n", error.what());
    return 1;
  }
}
