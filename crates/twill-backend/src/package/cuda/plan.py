"""Launches of which everything was checked before, through CUDA's driver: what is left open are addresses, and numbers.

Tensor maps are remembered by address. Needs cuda-bindings, which torch brings.
"""

import ctypes
import threading
from functools import partial

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
    """The tensor maps of a tile by address. They depend on nothing else, and own no memory of the GPU.

    index: that of a device, whose context a thread gets that has none.
    """

    __slots__ = ("rest", "before", "index")

    def __init__(self, tile, index=0):
        self.index = index
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

        def encode():
            return driver.cuTensorMapEncodeTiled(kind, rank, address - self.before, *others)

        error, *made = encode()
        self[address] = made[0] if error == driver.CUresult.CUDA_SUCCESS else failed(self.index, error, encode)
        return self[address]


class Plan:
    """A launch but for what may change from one to the next: addresses, and numbers that no matrix depends on.

    cuda: `torch.cuda`; index: that of the device.
    compiled: the kernel for that device; None to launch nothing.
    template: its arguments, with a `Tile` for a descriptor whose address changes.
    changing: by position among them, which of the varying values goes there.
    """

    __slots__ = ("cuda", "index", "launch_on")

    def __init__(self, cuda, index, compiled, ctas, template, changing):
        self.cuda, self.index, self.launch_on = cuda, index, nothing
        """`launch_on`: as `launch`, where the device is the current one, on a stream of it."""
        if compiled is not None:
            ensure_context(index)
            self.launch_on = self._flatten(compiled, ctas, template, changing)

    def _flatten(self, compiled, ctas, template, changing):
        """A function that fills in the arguments, and calls the driver's."""
        # Where each argument is, for the driver, which copies it when the kernel is launched.
        places = (ctypes.c_void_p * len(template))()
        known = {"launch": driver.cuLaunchKernel, "places": places, "at": ctypes.addressof(places), "lock": threading.Lock()}
        known.update(success=driver.CUresult.CUDA_SUCCESS, failed=partial(failed, self.index), function=function_of(compiled), values=[])
        lines = []
        for position, (argument, kind) in enumerate(zip(template, compiled.kinds)):
            which = changing.get(position)
            if isinstance(argument, (Tile, Descriptor)):
                maps = TensorMaps(argument if isinstance(argument, Tile) else argument.tile, self.index)
                known[f"maps{position}"] = maps
                if which is None:
                    places[position] = maps[argument.address].getPtr()
                else:
                    lines.append(f"places[{position}] = maps{position}[varying[{which}]].getPtr()")
                continue
            value = CTYPES.get(kind, ctypes.c_void_p)(argument if argument is not None else 0)
            places[position] = ctypes.addressof(value)
            known["values"].append(value)
            if which is not None:
                known[f"value{position}"] = value
                lines.append(f"value{position}.value = varying[{which}]")
        shape = f"{ctas}, 1, 1, {compiled.threads}, 1, 1, {compiled.shared}"
        # The places are the plan's own: one launch at a time may fill them.
        lines.append(f"(error,) = launch(function, {shape}, stream, at, 0)")
        lines.append(f"if error != success: failed(error, lambda: launch(function, {shape}, stream, at, 0))")
        exec("\n".join(["def launch_on(stream, varying):", "    with lock:", *(f"        {line}" for line in lines)]), known)
        return known["launch_on"]

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

    @property
    def steps(self):
        """As of plans in Gluon: what launches on a stream with varying values, and None, as it makes no arguments for a function."""
        return self.launch_on, None


def failed(index, error, again):
    """Raises what the driver says; where a thread has done nothing with CUDA so far, does it again with a context."""
    if error == driver.CUresult.CUDA_ERROR_INVALID_CONTEXT and ensure_context(index):
        return checked(again())
    return checked((error,))


def nothing(stream, varying):
    """The launch of no program."""


def ensure_context(index):
    """Makes the context that torch uses of a device current, which it is not in a thread that has done nothing with CUDA.

    Whether it was not.
    """
    if int(checked(driver.cuCtxGetCurrent())) != 0:
        return False
    device = checked(driver.cuDeviceGet(index))
    checked(driver.cuCtxSetCurrent(checked(driver.cuDevicePrimaryCtxRetain(device))))
    return True


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
