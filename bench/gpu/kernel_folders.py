"""Folders that hold generated kernels, and which row of the benchmark each serves. No torch."""

import importlib.util
import json
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from bench.gpu.rows import ATTENTION, MASKED, Row, causal

# Suffixes of folders whose kernels come of the same generator with a poorer schedule: a peer, never "ours".
NAIVE_SUFFIXES = ("swp-only", "no-swp")
# Where a constant shows in the tiles that a descriptor loads. Rows that warp groups share out do not show.
TILES = {
    "attention_forward": {"BLOCK_N": ("k_desc", 0), "HEAD_DIM": ("q_desc", 1)},
    "attention_mla": {"BLOCK_N": ("k_desc", 0), "HEAD_DIM": ("v_desc", 1)},
    "attention_backward": {"HEAD_DIM": ("q_desc", 1)},
    "attention_backward_causal": {"HEAD_DIM": ("q_desc", 1)},
    "gemm_tma": {"BLOCK_N": ("b_desc", 0), "BLOCK_K": ("a_desc", 1)},
    "gemm_pointers": {"BLOCK_N": ("b_ptr", 1), "BLOCK_K": ("b_ptr", 0)},
    "swiglu": {"BLOCK_N": ("gate_desc", 0), "BLOCK_K": ("x_desc", 1)},
    "gemm_bias_gelu": {"BLOCK_N": ("w_desc", 0), "BLOCK_K": ("x_desc", 1)},
    "gemm_rmsnorm": {"BLOCK_N": ("w_desc", 0), "BLOCK_K": ("x_desc", 1)},
    "gemm_gathered": {"BLOCK_N": ("b_desc", 0), "BLOCK_K": ("b_desc", 1)},
}
PRODUCT = dict(BLOCK_M=128, BLOCK_N=128, BLOCK_K=64)
DEFAULTS = {
    "attention_forward": dict(BLOCK_M=128, BLOCK_N=128, HEAD_DIM=128),
    "attention_mla": dict(BLOCK_M=128, BLOCK_N=128, HEAD_DIM=128),
    "attention_backward": dict(BLOCK_M=64, BLOCK_N=128, HEAD_DIM=128),
    "attention_backward_causal": dict(BLOCK_M=64, BLOCK_N=128, HEAD_DIM=128),
    "gemm_tma": PRODUCT,
    "gemm_pointers": PRODUCT,
    "swiglu": PRODUCT,
    "gemm_bias_gelu": PRODUCT | dict(GROUP_M=8),
    "gemm_rmsnorm": PRODUCT,
    "gemm_gathered": PRODUCT,
}
EXAMPLES = sorted(DEFAULTS, key=len, reverse=True)
"""Names of kernels begin with one of these; a longer one comes before its beginning."""
IN_NAMES = {
    "BLOCK_M": r"_m(\d+)(?=[_.]|$)",
    "BLOCK_N": r"_n(\d+)(?=[_.]|$)",
    "BLOCK_K": r"_k(\d+)(?=[_.]|$)",
    "HEAD_DIM": r"_d(\d+)(?=[_.]|$)",
}


class Unreadable(Exception):
    """A folder that holds no kernel of a known example; says which and why."""


@dataclass(frozen=True)
class Generated:
    """A generated kernel, named by its folder."""

    name: str
    folder: Path
    example: str
    constants: dict
    # Programs along the first axis of the grid of which there must be a multiple: those of a cluster of CTAs.
    whole: int = 1
    # The shortest loop, in elements, where it is re-tiled to longer steps than its source.
    least: int = 1

    @property
    def naive(self) -> bool:
        return self.name.endswith(tuple(f".{suffix}" for suffix in NAIVE_SUFFIXES))

    def serves(self, row: Row) -> bool:
        """Whether the kernel computes the row: the same example, mask and head dim, and tiles that divide the sizes."""
        c, s = self.constants, row.shape
        if self.example != row.example:
            return False
        if self.example not in ATTENTION:
            return self.example in MASKED or all(s[d] % c[f"BLOCK_{d}"] == 0 for d in "MNK")
        same = c["HEAD_DIM"] == s["head_dim"] and causal(self.example, c) == s["causal"]
        return same and s["length"] % c["BLOCK_M"] == 0 and s["length"] % c["BLOCK_N"] == 0


def find(folders: list[Path]) -> list[Generated]:
    """The kernels of these folders: a folder is a kernel's own, or holds one folder for each kernel."""
    found = []
    for folder in folders:
        if not folder.is_dir():
            raise Unreadable(f"{folder}: no such folder; `twill compile … --output {folder}/NAME` writes one")
        own = (
            [folder] if (folder / "launch.py").is_file() else sorted(path.parent for path in folder.glob("*/launch.py"))
        )
        if not own:
            raise Unreadable(
                f"{folder}: neither a kernel's folder nor a folder of such: there is no launch.py in it or one below"
            )
        found += [read(path) for path in own]
    names = [kernel.name for kernel in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise Unreadable(
            f"two folders of kernels have the name {', '.join(twice)}; results go by that name, so rename one"
        )
    return found


def read(folder: Path) -> Generated:
    """The kernel of a folder, from its kernel.json; what that leaves out, from the folder's name and the tiles."""
    folder = folder.resolve()
    info = answer(folder / "kernel.json")
    example = next(
        (e for name in (str(info.get("name", "")), folder.name) for e in EXAMPLES if name.startswith(e)), None
    )
    if example is None:
        raise Unreadable(
            f'{folder / "kernel.json"}: "name" is {info.get("name")!r}, which is none of {", ".join(EXAMPLES)}'
        )
    schedule = folder / "schedule.json"
    loops = answer(schedule).get("loops", []) if schedule.is_file() else []
    try:
        found = constants(example, info, folder.name, len(loops))
        grid = info.get("grid", {})
        cluster = grid.get("cluster", 1)
        whole = cluster * grid["cta_coarsening"][0] if cluster > 1 else 1
        least = max((parameter.get("at_least", 1) for parameter in info.get("parameters", [])), default=1)
        return Generated(folder.name, folder, example, found, whole, least)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"{folder / 'kernel.json'}: not as `twill compile` writes it: {error!r}") from error


def answer(path: Path) -> dict:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path}: {error}") from error
    if not isinstance(read, dict):
        raise Unreadable(f"{path}: an object is wanted")
    return read


def constants(example: str, info: dict, name: str, loops: int) -> dict:
    """Tile sizes and switches by the example's names. Two loops are those of causal attention, unmasked and masked."""
    found = dict(DEFAULTS[example])
    for constant, (parameter, dimension) in TILES[example].items():
        if shape := tile_of(info, parameter):
            found[constant] = shape[dimension]
    for constant, pattern in IN_NAMES.items():
        if constant in found and (match := re.search(pattern, name)):
            found[constant] = int(match[1])
    if example == "attention_forward":
        found["CAUSAL"] = "causal" in name or loops == 2
    given = info.get("constants") or {}
    return found | {key: type(value)(given[key]) for key, value in found.items() if key in given}


def tile_of(info: dict, parameter: str) -> list[int] | None:
    """The tile that is loaded through a descriptor, where all its tiles are of one shape."""
    for one in info.get("parameters", []):
        shapes = [block["shape"] for block in one.get("blocks", [])] if one.get("name") == parameter else []
        if shapes and all(shape == shapes[0] and len(shape) == 2 for shape in shapes):
            return shapes[0]
    return None


LOADED: dict[Path, object] = {}


def load(kernel: Generated) -> object:
    """The kernel itself, by the folder's launch.py, once a process; needs torch and a GPU."""
    if kernel.folder not in LOADED:
        name = f"launch_{len(LOADED)}_{re.sub(r'[^0-9a-zA-Z]', '_', kernel.name)}"
        spec = importlib.util.spec_from_file_location(name, kernel.folder / "launch.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        LOADED[kernel.folder] = module.load(kernel.folder)
    return LOADED[kernel.folder]


def exact(kernel: Generated) -> Generated:
    """The kernel with the constants that it gives once it is loaded."""
    given = load(kernel).info.get("constants") or {}
    return replace(
        kernel, constants=kernel.constants | {key: value for key, value in given.items() if key in kernel.constants}
    )
