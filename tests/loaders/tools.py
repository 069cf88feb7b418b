"""The tools of the loaders' tests, and the kernels that they load. A missing one is None."""

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOADERS = ROOT / "examples/loaders"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
HAS_GPU = any(Path("/dev").glob("nvidia[0-9]*"))
SCRATCH = tempfile.TemporaryDirectory()
atexit.register(SCRATCH.cleanup)


def newest(paths):
    """The file that was written last."""
    return max((path for path in paths if path.is_file()), key=lambda path: path.stat().st_mtime, default=None)


def toolkit():
    """CUDA's folder as wheels install it."""
    places = (Path(place) / "nvidia/cu13" for place in sys.path)
    return next((place for place in places if (place / "bin/nvcc").is_file()), None)


def neighbour(name):
    """A program of this interpreter's environment, or of the PATH."""
    own = Path(sys.executable).parent / name
    return str(own) if own.is_file() else shutil.which(name)


TWILL = newest(target / profile / "twill" for target in (TARGET, ROOT / "target") for profile in ("release", "debug"))
WHEELS = toolkit()
NVCC = str(WHEELS / "bin/nvcc") if WHEELS else shutil.which("nvcc")
CMAKE, CARGO, CC = neighbour("cmake"), shutil.which("cargo"), shutil.which("cc")


def include():
    """CUDA's headers."""
    return Path(NVCC).resolve().parents[1] / "include"


def environment():
    """Where CMake finds nvcc, and the linker the libraries that wheels keep elsewhere than a toolkit."""
    if WHEELS is None:
        return dict(os.environ)
    libraries = [str(WHEELS / "lib"), *filter(None, [os.environ.get("LIBRARY_PATH")])]
    return {**os.environ, "CUDACXX": NVCC, "LIBRARY_PATH": os.pathsep.join(libraries)}


def command(*words, variables=None, **options):
    """Runs a command, with variables of its own, and keeps what it printed."""
    words = [str(word) for word in words]
    return subprocess.run(
        words, check=False, capture_output=True, text=True, env=environment() | (variables or {}), cwd=ROOT, **options
    )


@functools.cache
def kernel(name, *options):
    """A folder with the kernel of an example; `options` are those of twill compile."""
    folder = Path(SCRATCH.name) / "-".join([name, *options])
    example = f"examples/{name}.ttir"
    done = command(TWILL, "compile", example, "--machine", "h200", "--no-assemble", *options, "-o", folder)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return folder


def cuda(name, *options):
    """A folder with the CUDA kernel of an example."""
    return kernel(name, "--emit", "cuda", *options)
