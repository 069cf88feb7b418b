"""The GPU, through CUDA's driver."""

from __future__ import annotations

import ctypes
import importlib
import random
from array import array
from collections.abc import Sequence
from typing import Any

from ..errors import TwillError
from .benchmark import WARP_GROUP, Kernel, Launch

TENSOR_BYTES, FLUSH_BYTES, DATA_NUMBERS = 256 << 20, 256 << 20, 32768
"""Sizes of the tensor that TMA copies, of the buffer that empties the cache, of the numbers to compute with."""
LINE = 128
"""Bytes of a row of the tensor."""
NEVER = 0xFFFFFFFF
SEED = 7


def cuda_driver() -> Any:
    """CUDA's driver."""
    try:
        driver: Any = importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        raise TwillError(
            f"CUDA's driver is called through cuda-bindings: pip install 'twill-gpu[cuda]' ({error})"
        ) from None
    return driver


class Gpu:
    """The first GPU, as long as the `with` lasts. Raises `TwillError` where there is none."""

    def __init__(self) -> None:
        self._driver = driver = cuda_driver()
        try:
            self._checked(driver.cuInit(0))
            self._device = self._checked(driver.cuDeviceGet(0))
        except (TwillError, RuntimeError, OSError) as error:
            raise TwillError(f"calibrating needs a GPU, and there is none: {error}") from None
        self._attributes = driver.CUdevice_attribute
        self._modules: list[object] = []

    def __enter__(self) -> Gpu:
        driver = self._driver
        self._checked(driver.cuCtxSetCurrent(self._checked(driver.cuDevicePrimaryCtxRetain(self._device))))
        self.multiprocessors = self._attribute("CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT")
        self._tensor, self._flushed = (self._memory(size) for size in (TENSOR_BYTES, FLUSH_BYTES))
        self._room = 4096 * self.multiprocessors
        self._out = self._memory(self._room)
        chosen = random.Random(SEED)
        numbers = array("f", (chosen.uniform(-1, 1) for _ in range(DATA_NUMBERS)))
        self._data = self._memory(len(numbers) * numbers.itemsize)
        self._checked(driver.cuMemcpyHtoD(self._data, numbers.buffer_info()[0], len(numbers) * numbers.itemsize))
        # No zeros: what moves them takes less power.
        self._checked(driver.cuMemsetD32(self._tensor, 0x3C00BC00, TENSOR_BYTES // 4))
        self._maps: dict[int, Any] = {}
        return self

    def __exit__(self, *raised: object) -> None:
        for module in self._modules:
            self._driver.cuModuleUnload(module)
        for memory in (self._tensor, self._flushed, self._out, self._data):
            self._driver.cuMemFree(memory)
        self._driver.cuDevicePrimaryCtxRelease(self._device)

    @property
    def name(self) -> str:
        """The vendor's name for it."""
        name: bytes = self._checked(self._driver.cuDeviceGetName(128, self._device))
        return name.split(b"\0")[0].decode()

    @property
    def architecture(self) -> int:
        """Compute capability, times 10."""
        major, minor = (
            self._attribute(f"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR")
        )
        return 10 * major + minor

    @property
    def driver_version(self) -> str:
        """The version of the driver as NVIDIA counts them, or of CUDA as the driver does."""
        try:
            with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
                words = file.readline().split()
            return next(word for word in words if word[0].isdigit() and "." in word)
        except (OSError, StopIteration):
            version = self._checked(self._driver.cuDriverGetVersion())
            return f"of CUDA {version // 1000}.{version % 1000 // 10}"

    def load(self, code: bytes, kernels: Sequence[Kernel]) -> dict[str, object]:
        """The functions of a program, by name."""
        module = self._checked(self._driver.cuModuleLoadData(code))
        self._modules.append(module)
        functions = {}
        for kernel in kernels:
            function = self._checked(self._driver.cuModuleGetFunction(module, kernel.name.encode()))
            most = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._checked(self._driver.cuFuncSetAttribute(function, most, kernel.shared_bytes))
            functions[kernel.name] = function
        return functions

    def run(self, kernel: Kernel, function: object, launch: Launch, series_numbers: int, origin: int = 0) -> list[int]:
        """Launches a kernel and gives back what it wrote: N numbers for each series of each CTA."""
        driver = self._driver
        ctas = self.multiprocessors if launch.ctas is None else launch.ctas
        count = ctas * kernel.series * series_numbers
        if 8 * count > self._room:
            raise TwillError(f"{kernel.name} writes {8 * count} bytes, and there is room for {self._room}")
        values = [
            ctypes.c_void_p(int(self._out)),
            ctypes.c_void_p(int(self._data)),
            ctypes.c_uint32(NEVER),
            ctypes.c_uint32(origin),
        ]
        places = (ctypes.c_void_p * 5)(
            *(ctypes.addressof(value) for value in values), self._map(kernel.box_rows).getPtr()
        )
        threads = WARP_GROUP * launch.groups
        self._checked(
            driver.cuLaunchKernel(
                function, ctas, 1, 1, threads, 1, 1, kernel.shared_bytes, 0, ctypes.addressof(places), 0
            )
        )
        written = array("q", bytes(8 * count))
        self._checked(driver.cuMemcpyDtoH(written.buffer_info()[0], self._out, 8 * count))
        return written.tolist()

    def flush(self) -> None:
        """Writes enough that nothing of the tensor is left in the cache."""
        self._checked(self._driver.cuMemsetD32(self._flushed, 1, FLUSH_BYTES // 4))
        self._checked(self._driver.cuCtxSynchronize())

    def _map(self, rows: int) -> Any:
        """A tensor map with boxes of N rows of 128 bytes."""
        if rows not in self._maps:
            driver = self._driver
            half, elements = driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT16, LINE // 2
            self._maps[rows] = self._checked(
                driver.cuTensorMapEncodeTiled(
                    half,
                    2,
                    int(self._tensor),
                    [driver.cuuint64_t(elements), driver.cuuint64_t(TENSOR_BYTES // LINE)],
                    [driver.cuuint64_t(LINE)],
                    [driver.cuuint32_t(elements), driver.cuuint32_t(rows)],
                    [driver.cuuint32_t(1)] * 2,
                    driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
                    driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
                    driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                    driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
                )
            )
        return self._maps[rows]

    def _memory(self, size: int) -> Any:
        return self._checked(self._driver.cuMemAlloc(size))

    def _attribute(self, name: str) -> int:
        return int(self._checked(self._driver.cuDeviceGetAttribute(getattr(self._attributes, name), self._device)))

    def _checked(self, answer: tuple[Any, ...]) -> Any:
        error, *values = answer
        if int(error) != 0:
            raise TwillError(f"CUDA: {error.name}")
        return values[0] if values else None
