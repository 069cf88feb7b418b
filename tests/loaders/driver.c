// Stands in for CUDA's driver where there is no GPU: what a program copies and describes is taken at its word, and the
// first launch computes on the CPU C = A · Bᵀ of the matrices that its tensor maps describe. Says on standard error how it was launched.
// With TWILL_WRONG in the environment an element of the result is wrong. cc -shared -fPIC -o libcuda.so.1 driver.c

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOT_FOUND = 500, INVALID = 1 };
typedef int result;

/// A tensor map: what was said of it.
struct map {
  char *address;
  uint64_t columns, rows, stride;
  uint32_t box[2], type, swizzle;
};

static uint64_t allowed, context;
static void *current;

result cuInit(unsigned flags) { return flags == 0 ? 0 : INVALID; }
result cuDriverGetVersion(int *version) { return *version = 13000, 0; }
result cuGetErrorString(result error, const char **text) { return (void)error, *text = "an error", 0; }
result cuGetErrorName(result error, const char **text) { return cuGetErrorString(error, text); }
// NVRTC asks for one.
result cuGetExportTable(const void **table, const void *id) { return (void)id, *table = NULL, NOT_FOUND; }

result cuDeviceGet(int *device, int number) { return *device = number, number == 0 ? 0 : INVALID; }
result cuDeviceGetCount(int *count) { return *count = 1, 0; }
result cuDeviceGetAttribute(int *value, int attribute, int device) {
  (void)device;
  // Multiprocessors, and the compute capability.
  *value = attribute == 16 ? 132 : attribute == 75 ? 9 : 0;
  return 0;
}

result cuDevicePrimaryCtxRetain(void **made, int device) { return (void)device, *made = &context, 0; }
result cuDevicePrimaryCtxRelease_v2(int device) { return (void)device, 0; }
result cuCtxSetCurrent(void *wanted) { return current = wanted, 0; }
result cuCtxGetCurrent(void **found) { return *found = current, 0; }
result cuCtxSynchronize(void) { return 0; }
result cuStreamSynchronize(void *stream) { return (void)stream, 0; }

result cuModuleLoadData(void **module, const void *image) { return *module = (void *)1, memcmp(image, "\177ELF", 4) ? INVALID : 0; }
result cuModuleUnload(void *module) { return (void)module, 0; }
result cuModuleGetFunction(void **function, void *module, const char *name) {
  *function = module;
  return strcmp(name, "gemm_tma") ? NOT_FOUND : 0;
}
result cuFuncSetAttribute(void *function, int attribute, int value) {
  (void)function;
  return attribute == 8 ? (allowed = value, 0) : INVALID;
}

result cuMemAlloc_v2(void **address, size_t size) { return *address = aligned_alloc(256, (size + 255) / 256 * 256), 0; }
result cuMemFree_v2(void *address) { return free(address), 0; }
result cuMemcpyHtoD_v2(void *to, const void *from, size_t size) { return memcpy(to, from, size), 0; }
result cuMemcpyDtoH_v2(void *to, const void *from, size_t size) { return memcpy(to, from, size), 0; }
result cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t size, void *stream) { return (void)stream, cuMemcpyHtoD_v2(to, from, size); }
result cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t size, void *stream) { return (void)stream, cuMemcpyDtoH_v2(to, from, size); }

// An event is what it was made for, and one more: 1 can be asked for the time.
result cuEventCreate(void **event, unsigned flags) { return *event = (void *)(uintptr_t)(flags + 1), 0; }
result cuEventRecord(void *event, void *stream) { return (void)event, (void)stream, 0; }
result cuEventSynchronize(void *event) { return (void)event, 0; }
result cuEventDestroy_v2(void *event) { return (void)event, 0; }
result cuEventElapsedTime(float *milliseconds, void *begin, void *end) {
  *milliseconds = 1;
  return begin == (void *)1 && end == (void *)1 ? 0 : INVALID;
}

result cuTensorMapEncodeTiled(struct map *map, int type, uint32_t rank, void *address, const uint64_t *shape,
                              const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                              int swizzle, int promotion, int fill) {
  // The driver wants the map itself at a multiple of 64 bytes, but takes those of cuda-bindings, which are at 16.
  if ((uintptr_t)map % 16 || (uintptr_t)address % 16 || rank != 2 || strides[0] % 16 || interleave || fill) return INVALID;
  if (steps[0] != 1 || steps[1] != 1 || box[0] * 2 > 128 || box[1] > 256 || promotion != 2) return INVALID;
  struct map made = {address, shape[0], shape[1], strides[0], {box[0], box[1]}, type, swizzle};
  _Static_assert(sizeof made <= 128, "a tensor map has 128 bytes");
  return memcpy(map, &made, sizeof made), 0;
}

static double at(const struct map *map, uint64_t row, uint64_t column) {
  return ((_Float16 *)(map->address + row * map->stride))[column];
}

result cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned j, unsigned k,
                      unsigned shared, void *stream, void **arguments, void **extra) {
  static int launches;
  (void)function, (void)stream;
  const struct map *c = arguments[0], *a = arguments[1], *b = arguments[2];
  const int depth = *(int *)arguments[3];
  if (y != 1 || z != 1 || j != 1 || k != 1 || extra || shared > allowed || a->columns != (uint64_t)depth) return INVALID;
  if (a->columns != b->columns || a->rows != c->rows || b->rows != c->columns || a->type != 6) return INVALID;
  if (launches++) return 0;
  fprintf(stderr, "%u blocks of %u threads and %u bytes, programs %d %d %d\n", x, threads, shared, *(int *)arguments[4],
          *(int *)arguments[5], *(int *)arguments[6]);
  for (uint64_t row = 0; row < c->rows; row++)
    for (uint64_t column = 0; column < c->columns; column++) {
      float sum = 0;
      for (int i = 0; i < depth; i++) sum += at(a, row, i) * at(b, column, i);
      ((_Float16 *)(c->address + row * c->stride))[column] = sum;
    }
  if (getenv("TWILL_WRONG")) *(_Float16 *)(c->address + (c->rows - 1) * c->stride + (c->columns - 1) * 2) += 1;
  return 0;
}

/// Functions by their names, of whichever version is here.
result cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status) {
  (void)version, (void)flags;
  Dl_info self;
  char other[128];
  dladdr((void *)cuInit, &self);
  void *library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  snprintf(other, sizeof other, "%s_v2", name);
  *found = dlsym(library, other);
  if (!*found) *found = dlsym(library, name);
  if (status) *status = *found ? 0 : 1;
  return *found ? 0 : NOT_FOUND;
}
result cuGetProcAddress(const char *name, void **found, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, found, version, flags, NULL);
}
