"""Launches of which everything was checked before, through CUDA's driver: what is left open are addresses, and numbers.

Tensor maps are remembered by address. Needs cuda-bindings, which torch brings.
"""

import ctypes
import threading

from cuda.bindings import driver

try:
    from torch._C import _cuda_getCurrentRawStream as raw_stream
except ImportError:
    raw_stream = None
REMEMBERED = 1024
"""Tensor maps that a plan remembers of a descriptor, of 128 bytes each."""
DTYPES = {
    "fp16": (driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2),
    "bf16": (driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2),
    "fp32": (driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4),
    "fp64": (driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 8),
    "i8": (driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT8, 1),
    "fp8e4nv": (driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT8, 1),
    "fp8e5": (driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT8, 1),
    "i16": (driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT16, 2),
    "i32": (driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_INT32, 4),
    "i64": (driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_INT64, 8),
}
SWIZZLES = {
    0: driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_NONE,
    32: driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_32B,
    64: driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_64B,
    128: driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
}
CTYPES = {
    "fp32": ctypes.c_float,
    "fp64": ctypes.c_double,
    "i1": ctypes.c_bool,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
}


class DriverError(RuntimeError):
    """A call of CUDA's driver that failed."""


def checked(answer):
    """What a call of the driver gave, or the error that it failed with."""
    error, *values = answer
    if error != driver.CUresult.CUDA_SUCCESS:
        raise DriverError(f"CUDA: {error.name}")
    return values[0] if values else None


class Tile:
    """A tensor descriptor but for its address; its layout: element, extents of a box, bytes of a swizzled line.

    before: bytes of rows before the address.
    """

    __slots__ = ("shape", "strides", "layout", "before")

    def __init__(self, shape, strides, block_shape, layout, before=0):
        self.shape, self.strides, self.layout, self.before = tuple(shape), tuple(strides), layout, before


class Descriptor:
    """A tensor descriptor of what was checked before: an address, but no tensor."""

    __slots__ = ("address", "tile")

    def __init__(self, address, tile):
        self.address, self.tile = address, tile


class TensorMaps(dict):
    """The tensor maps of a tile by address. They depend on nothing else, and own no memory of the GPU."""

    __slots__ = ("rest", "before")

    def __init__(self, tile):
        element, box, swizzle = tile.layout
        kind, size = DTYPES[element]
        rank = len(tile.shape)
        self.before = tile.before
        self.rest = (
            kind,
            rank,
            [driver.cuuint64_t(extent) for extent in reversed(tile.shape)],
            [driver.cuuint64_t(stride * size) for stride in reversed(tile.strides[:-1])],
            [driver.cuuint32_t(extent) for extent in reversed(box)],
            [driver.cuuint32_t(1)] * rank,
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            SWIZZLES[swizzle],
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )

    def __missing__(self, address):
        if len(self) >= REMEMBERED:
            self.clear()
        kind, rank, *others = self.rest
        made = self[address] = checked(driver.cuTensorMapEncodeTiled(kind, rank, address - self.before, *others))
        return made


class Plan:
    """A launch but for what may change from one to the next: addresses, and numbers that no matrix depends on.

    cuda: `torch.cuda`; index: that of the device.
    compiled: the kernel for that device; None to launch nothing.
    template: its arguments, with a `Tile` for a descriptor whose address changes.
    changing: by position among them, which of the varying values goes there.
    """

    __slots__ = ("cuda", "index", "function", "ctas", "threads", "shared", "values", "places", "maps", "lock")

    def __init__(self, cuda, index, compiled, ctas, template, changing):
        self.cuda, self.index, self.ctas, self.function = cuda, index, ctas, None
        if compiled is None:
            return
        ensure_context(index)
        self.function, self.threads, self.shared = function_of(compiled), compiled.threads, compiled.shared
        self.lock, self.values, self.maps = threading.Lock(), [], []
        # Where each argument is, for the driver, which copies it when the kernel is launched.
        self.places = (ctypes.c_void_p * len(template))()
        for position, (argument, kind) in enumerate(zip(template, compiled.kinds)):
            which = changing.get(position)
            if isinstance(argument, (Tile, Descriptor)):
                maps = TensorMaps(argument if isinstance(argument, Tile) else argument.tile)
                if which is None:
                    self.places[position] = maps[argument.address].getPtr()
                self.maps.append((position, which, maps))
                continue
            value = CTYPES.get(kind, ctypes.c_void_p)(argument if argument is not None else 0)
            self.places[position] = ctypes.addressof(value)
            self.values.append((which, value))

    def launch(self, varying):
        """Launches with these varying values, on the current stream of the device."""
        if self.cuda.current_device() == self.index:
            self.launch_on(self._stream(), varying)
        else:
            with self.cuda.device(self.index):
                self.launch_on(self._stream(), varying)

    def _stream(self):
        """The current stream of the device."""
        return self.cuda.current_stream(self.index).cuda_stream if raw_stream is None else raw_stream(self.index)

    def launch_on(self, stream, varying):
        """As `launch`, where the device is the current one, on a stream of it."""
        if self.function is None:
            return
        ensure_context(self.index)
        # The places are the plan's own: one launch at a time may fill them.
        with self.lock:
            for which, value in self.values:
                if which is not None:
                    value.value = varying[which]
            for position, which, maps in self.maps:
                if which is not None:
                    self.places[position] = maps[varying[which]].getPtr()
            checked(
                driver.cuLaunchKernel(
                    self.function, self.ctas, 1, 1, self.threads, 1, 1, self.shared, stream, ctypes.addressof(self.places), 0
                )
            )


def ensure_context(index):
    """Makes the context that torch uses of a device current, which it is not in a thread that has done nothing with CUDA."""
    if int(checked(driver.cuCtxGetCurrent())) == 0:
        device = checked(driver.cuDeviceGet(index))
        checked(driver.cuCtxSetCurrent(checked(driver.cuDevicePrimaryCtxRetain(device))))


FUNCTIONS = {}
"""Functions of modules that are loaded, by compiled kernel; modules are never unloaded."""


def function_of(compiled):
    """The kernel's function in the current context, with leave to use its shared memory."""
    context = int(checked(driver.cuCtxGetCurrent()))
    key = id(compiled), context
    if key not in FUNCTIONS:
        module = checked(driver.cuModuleLoadData(compiled.asm["cubin"]))
        function = checked(driver.cuModuleGetFunction(module, compiled.name.encode()))
        most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        checked(driver.cuFuncSetAttribute(function, most, compiled.shared))
        FUNCTIONS[key] = function, compiled
    return FUNCTIONS[key][0]
