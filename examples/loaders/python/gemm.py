"""Runs the GEMM of examples/gemm_tma.py from Python without torch: C = A · Bᵀ, compared with sums in float64.

    python gemm.py FOLDER M N K
    python gemm.py --describe FOLDER M N K    # what a launch takes, as JSON; needs no GPU

FOLDER is what `twill compile --emit cuda` wrote. Needs numpy, cuda-bindings, nvidia-cuda-nvrtc and nvidia-cuda-runtime.
Exit status 0 if the result is right, 1 if it is not, or if something failed.
"""

import argparse
import importlib.util
import json
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy

SAMPLES, WARM_UP, LAUNCHES = 4096, 3, 20
MAP = (
    "data_type",
    "rank",
    "shape",
    "strides",
    "box",
    "element_strides",
    "interleave",
    "swizzle",
    "l2_promotion",
    "oob_fill",
)
"""The parameters of a tensor map but for the address, as `cuTensorMapEncodeTiled` takes it."""


def neighbour(folder, name):
    """A file of the kernel's folder as a module."""
    spec = importlib.util.spec_from_file_location(f"twill_{name}", Path(folder).resolve() / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain(value):
    """CUDA's numbers as Python's."""
    return [int(item) for item in value] if isinstance(value, list) else int(value)


class Gemm:
    """The kernel of a folder for matrices of these sizes."""

    def __init__(self, folder, assemble, m: int, n: int, k: int):
        self.assemble, self.planning = assemble, neighbour(folder, "plan")
        self.kernel, self.sources = assemble.read_kernel(folder)
        if self.kernel["name"] != "gemm_tma":
            raise ValueError(f"{folder}: this program calls gemm_tma, not {self.kernel['name']}")
        if n % 8 or k % 16:
            raise ValueError(f"N must be a multiple of 8 and K of 16 (rows of 16 bytes), not {n} and {k}")
        self.shapes = {"a_desc": (m, k), "b_desc": (n, k), "c_desc": (m, n)}
        constants = self.kernel["constants"]
        self.programs = (-(-m // constants["BLOCK_M"]), -(-n // constants["BLOCK_N"]), 1)
        self.numbers = {"K": k, **dict(zip(self.assemble.PROGRAMS, self.programs))}
        self.tiles = {
            block["argument"]: (parameter["name"], self._tile(parameter, block))
            for parameter in self.kernel["parameters"]
            for block in parameter.get("blocks", ())
        }

    def _tile(self, parameter, block):
        """A block of a matrix, which is row-major."""
        shape, argument = self.shapes[parameter["name"]], block["argument"]
        layout = self.assemble.descriptor_layout(self.kernel, argument, parameter["element"], block["shape"])
        return self.planning.Tile(shape, (shape[1], 1), block["shape"], layout)

    def describe(self):
        """The parameters of a launch, but for addresses."""
        return {
            "function": self.kernel["function"],
            "threads": self.kernel["threads"],
            "shared_memory": self.kernel["shared_memory"],
            "grid": self.kernel["grid"]["kind"],
            "programs": self.programs,
            "arguments": [
                {"name": name, **dict(zip(MAP, map(plain, self.planning.TensorMaps(self.tiles[name][1]).rest)))}
                if name in self.tiles
                else {"name": name, "value": self.numbers[name]}
                for name in self.kernel["arguments"]
            ],
        }

    def plan(self, addresses, multiprocessors: int):
        """A launch on matrices at these addresses."""
        arguments = []
        for name in self.kernel["arguments"]:
            parameter, tile = self.tiles.get(name, (None, None))
            arguments.append(self.planning.Descriptor(addresses[parameter], tile) if tile else self.numbers[name])
        grid = self.kernel["grid"]
        extents = [-(-count // per) for count, per in zip(self.programs, grid["cta_coarsening"])]
        ctas, cluster = math.prod(extents), grid.get("cluster", 1)
        if ctas and extents[0] % cluster:
            raise ValueError(f"{extents[0]} thread blocks along x are no whole clusters of {cluster}")
        if ctas + (multiprocessors if grid["kind"] == "persistent" else 0) >= 1 << 31:
            raise ValueError(f"{ctas} tiles are more than a launch can have")
        if grid["kind"] == "persistent":
            step = max(multiprocessors * grid["ctas_per_sm"] // cluster, 1) * cluster
            # Even waves: as few thread blocks as need no more waves of tiles, so that they share what they load.
            ctas = -(-ctas // max(1, -(-ctas // step)))
            ctas += -ctas % cluster
        compiled, _ = self.assemble.build(self.kernel, self.sources)
        # In the place of torch: the current device is the one there is, and the stream is the default one.
        cuda = SimpleNamespace(current_device=lambda: 0, current_stream=lambda index: SimpleNamespace(cuda_stream=0))
        return self.planning.Plan(cuda, 0, compiled, ctas, arguments, {})


def compare(a, b, c, random):
    """Largest error of some elements, and as a part of what is allowed: a float16 of the sum, and what float32 may lose."""
    rows, columns = (random.integers(0, extent, SAMPLES) for extent in c.shape)
    rows[0], columns[0] = c.shape[0] - 1, c.shape[1] - 1
    errors, parts = numpy.empty(SAMPLES), numpy.empty(SAMPLES)
    for sample, (row, column) in enumerate(zip(rows, columns)):
        products = a[row].astype(numpy.float64) * b[column].astype(numpy.float64)
        wanted = products.sum()
        errors[sample] = abs(float(c[row, column]) - wanted)
        parts[sample] = errors[sample] / (abs(wanted) * 2.0**-10 + abs(products).sum() * 2.0**-16 + 2.0**-24)
    return errors.max(), parts.max(), bool(numpy.isfinite(c).all() and (parts <= 1).all())


def run(gemm: Gemm):
    """Runs the kernel; whether its result is right."""
    from cuda.bindings import driver

    call = gemm.planning.checked
    try:
        call(driver.cuInit(0))
        device = call(driver.cuDeviceGet(0))
    except (RuntimeError, OSError) as error:
        raise RuntimeError(f"no GPU: {error}") from None
    call(driver.cuCtxSetCurrent(call(driver.cuDevicePrimaryCtxRetain(device))))
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    multiprocessors = call(driver.cuDeviceGetAttribute(attribute, device))

    random = numpy.random.default_rng(1)
    matrices = {
        name: (random.integers(-1024, 1024, shape, dtype=numpy.int16) / numpy.float32(1024)).astype(numpy.float16)
        for name, shape in gemm.shapes.items()
    }
    # Elements that are not written stay NaN.
    matrices["c_desc"][:] = numpy.nan
    addresses = {name: call(driver.cuMemAlloc(matrix.nbytes)) for name, matrix in matrices.items()}
    for name, matrix in matrices.items():
        call(driver.cuMemcpyHtoD(addresses[name], matrix.ctypes.data, matrix.nbytes))
    plan = gemm.plan({name: int(address) for name, address in addresses.items()}, multiprocessors)
    plan.launch([])
    a, b, c = matrices.values()
    call(driver.cuMemcpyDtoH(c.ctypes.data, addresses["c_desc"], c.nbytes))
    largest, part, right = compare(a, b, c, random)

    begin, end = (call(driver.cuEventCreate(0)) for _ in range(2))
    for _ in range(WARM_UP):
        plan.launch([])
    call(driver.cuEventRecord(begin, 0))
    for _ in range(LAUNCHES):
        plan.launch([])
    call(driver.cuEventRecord(end, 0))
    call(driver.cuEventSynchronize(end))
    milliseconds = call(driver.cuEventElapsedTime(begin, end))
    for address in addresses.values():
        call(driver.cuMemFree(address))

    (m, k), (n, _) = a.shape, b.shape
    print(
        f"gemm_tma {m} x {n} x {k}: {'right' if right else 'WRONG'}, largest error {largest:.3g}, "
        f"{part:.2f} of what float16 allows, {2e-9 * m * n * k * LAUNCHES / milliseconds:.1f} TFLOP/s"
    )
    return right


def main():
    parser = argparse.ArgumentParser(description="Runs the generated GEMM without torch.")
    parser.add_argument("folder", help="what twill compile --emit cuda wrote")
    parser.add_argument("sizes", nargs=3, type=int, metavar="SIZE", help="M, N and K")
    parser.add_argument("--describe", action="store_true", help="print what a launch takes, as JSON")
    arguments = parser.parse_args()
    if not (Path(arguments.folder) / "kernel.cu").is_file():
        sys.exit(f"gemm: {arguments.folder} holds no kernel.cu; give a folder that twill compile --emit cuda wrote")
    assemble = neighbour(arguments.folder, "assemble")
    try:
        gemm = Gemm(arguments.folder, assemble, *arguments.sizes)
        if arguments.describe:
            print(json.dumps(gemm.describe(), indent=1))
        elif not run(gemm):
            sys.exit(1)
    except (assemble.KernelError, ImportError, OSError, RuntimeError, ValueError) as error:
        sys.exit(f"gemm: {error}")


if __name__ == "__main__":
    main()
