"""Which ptxas assembles the kernel of this folder, and how it is called.

It is Triton's own, or the one that TRITON_PTXAS_PATH names. But on Hopper versions before 13.3 can overwrite registers that
a wgmma still reads, and Triton 3.6 to 3.8 come with 12.x for it. So where neither variable is set, a newer one is taken if
there is one: the one that Triton has for Blackwell, or that of `pip install 'nvidia-cuda-nvcc>=13.3'`.

Inductor sets that variable to torch's own ptxas when it compiles a kernel, and not in a process that finds all in its caches.
That counts as if it were not set: a kernel is the same in both.
"""

import collections
import ctypes
import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import triton
from triton.backends.nvidia.compiler import get_ptxas, ptx_get_version

WHEELS = ("nvidia/cu13/bin/ptxas", "nvidia/cuda_nvcc/bin/ptxas")
BUNDLED = Path(triton.__file__).parent / "backends/nvidia/bin"

Ptxas = collections.namedtuple("Ptxas", "path version")
Ptxas.__doc__ = "An assembler, and its version as numbers."


def chosen(arch, is_sound):
    """The ptxas for a compute capability, 9.0 is 90; a version may be sound for it or not."""
    own = tritons(arch)
    if is_sound(own.version, arch) or Path(own.path).parent != BUNDLED:
        return own
    for path in [BUNDLED / "ptxas-blackwell", *installed()]:
        numbers = version(str(path)) if path.is_file() else ()
        if numbers and is_sound(numbers, arch) and loads(numbers):
            return Ptxas(str(path), numbers)
    return own


def is_torchs(path):
    """Whether a ptxas is the one that torch comes with, which Inductor names (toolchain.py has the same)."""
    path = Path(path)
    return path.parts[-3:] == ("torch", "bin", "ptxas") and (path.parents[1] / "__init__.py").is_file()


def tritons(arch):
    """The one that Triton takes, but for torch's."""
    path, bundled = get_ptxas(arch).path, BUNDLED / "ptxas"
    if path == os.environ.get("TRITON_PTXAS_PATH") and is_torchs(path) and bundled.is_file():
        path = str(bundled)
    return Ptxas(path, version(path))


def ptx_version(ptxas, arch):
    """The version of PTX for one, as Triton's option: one that Triton's own reads, too."""
    numbers = min(filter(None, (ptxas.version, tritons(arch).version)), default=None)
    return numbers and ptx_get_version("{}.{}".format(*numbers))


def installed():
    """Where packages of Python may have a ptxas."""
    return [Path(place) / wheel for place in sys.path if place for wheel in WHEELS]


@functools.cache
def version(path):
    """The version of a ptxas, as numbers; none if it does not say one."""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
    except OSError:
        return ()
    found = re.search(r"\bV(\d+)\.(\d+)\.(\d+)", said)
    return tuple(map(int, found.groups())) if found else ()


@functools.cache
def loads(version):
    """Whether the CUDA driver of this machine loads what this version makes: that of its major version does, and later ones."""
    try:
        driver, supported = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
        return driver.cuDriverGetVersion(ctypes.byref(supported)) != 0 or supported.value // 1000 >= version[0]
    except (OSError, AttributeError):
        return True  # nothing is loaded here


def flags(ptxas, options, architecture):
    """What Triton calls a ptxas with, for a kernel with these options."""
    unoptimised = triton.knobs.nvidia.disable_ptxas_opt
    lines = ["-g", "--opt-level", "0"] if unoptimised else ["-lineinfo"]
    fused = [] if options.enable_fp_fusion else ["--fmad=false"]
    major, minor = map(int, triton.__version__.split(".")[:2])
    # Triton has it against a mistake of ptxas 13.
    allocation = ["--regAllocOptLevel=2"] if (major, minor) >= (3, 7) or ptxas.version >= (13,) else []
    more = options.ptx_options.split(" ") if getattr(options, "ptx_options", None) else []
    return [*lines, *fused, "-v", *allocation, *more, f"--gpu-name={architecture}"]
