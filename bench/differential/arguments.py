"""Arguments of a kernel of which only types and names are known."""

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from .sides import ours, stock, warps_of
from .signature import Argument, arguments_of

SLOT, MARGIN = 64 << 20, 8 << 20
"""Bytes of memory for each pointer, and of those how many are before it."""
TORCH = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
TORCH |= {"f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2", "i1": "bool", "ui8": "uint8"}
TORCH |= {f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)}


@dataclass(frozen=True)
class Trial:
    """How large numbers are: sizes of matrices and sequences, and others; multiples of 16, or anything."""

    name: str
    grid: tuple[int, int, int]
    size16: int
    size: int
    other16: int
    other: int
    zeros: bool = False
    """Whether memory of integers is all zeros."""
    unlocked: bool = False
    """Whether nobody has to wait for another program."""


TRIALS = (Trial("grid", (2, 2, 1), 192, 75, 64, 3), Trial("one program", (1, 1, 1), 128, 200, 32, 2))
FALLBACKS = (Trial("small", (1, 1, 1), 16, 16, 16, 2, zeros=True), Trial("large", (1, 1, 1), 256, 250, 64, 4))
FALLBACKS += (Trial("unlocked", (2, 1, 1), 256, 250, 64, 4, unlocked=True), Trial("splits", (1, 2, 16), 192, 75, 16, 2))
"""For kernels of which no trial compared anything."""


STRIDE = re.compile(r"stride", re.IGNORECASE)
COUNT = re.compile(r"group(?!_?size)|batch|heads|num_(?!valid|tok)", re.IGNORECASE)
SIZE = re.compile(r"^([mnkstdl]|t[qk])$|seq|len|ctx|tok|size|dim$|height|width|rows|cols|total|valid", re.IGNORECASE)
BLOCK = re.compile(r"^(group|block)(_size)?_[mnk]$", re.IGNORECASE)
"""Extents of blocks that have one scale: kernels divide them by a tile's, which must not be more."""
ROW, SHORT = 256, 64
"""The least stride, at least as large as any row is long; and that of short rows."""


def numbers_of(arguments: list[Argument], trial: Trial) -> dict[str, int | float]:
    """A value for each scalar."""
    strides = [one.name for one in arguments if one.kind == "scalar" and STRIDE.search(one.name)]
    numbers = strides_of(strides, SHORT if trial.size <= SHORT and trial.zeros else ROW)
    for one in arguments:
        if one.kind != "scalar" or one.name in numbers:
            continue
        if not one.element.startswith("i"):
            numbers[one.name] = 0.5
        elif BLOCK.search(one.name):
            numbers[one.name] = 128
        elif SIZE.search(one.name) and not COUNT.search(one.name):
            numbers[one.name] = trial.size16 if one.divisible else trial.size
        else:
            numbers[one.name] = trial.other16 if one.divisible else trial.other
    return numbers


def strides_of(names: list[str], row: int) -> dict[str, int]:
    """Strides that let nothing overlap where those of a tensor are given from the outer to the inner dimension."""
    groups, last = [], None
    for name in names:
        key = name.split("_")[0] if name.lower().endswith("stride") else re.match(r".*?stride_?[a-z]?", name, re.I)[0]
        if key.lower() != last:
            groups.append([])
        groups[-1].append(name)
        last = key.lower()
    steps = (row, row * row, row * row * 4, row * row * 8, row * row * 16)
    return {name: steps[min(i, 4)] for group in groups for i, name in enumerate(reversed(group))}


# What integers in memory mostly mean, by the pointer's name; anything else is an index or a count: 0 to 3.
STARTS = re.compile(r"cu_|indptr|offset|start|_loc$", re.IGNORECASE)
PAIRS = re.compile(r"(chunk|token|split)_ind", re.IGNORECASE)
LENGTHS = re.compile(r"len|rank|size|padded|total", re.IGNORECASE)
ORDERS = re.compile(r"sorted|gather|scatter|perm", re.IGNORECASE)
LOCKS = re.compile(r"lock|counter", re.IGNORECASE)
EXPONENTS = re.compile(r"scale", re.IGNORECASE)
"""Of bytes: of two, as scales of blocks are."""
PACKED = re.compile(r"^b_ptr$|zeros|weight_packed|qweight|w_q", re.IGNORECASE)


def contents(name: str, trial: Trial) -> str:
    """What memory of integers begins with, in words that `twill-fuzz/src/bin/interpret/program.rs` knows."""
    if LOCKS.search(name) and trial.unlocked:
        return "all 1"
    if trial.zeros or LOCKS.search(name):
        return "zeros"
    if STARTS.search(name):
        return f"starts {trial.size}"
    if PAIRS.search(name):
        return "pairs"
    if LENGTHS.search(name):
        return f"all {trial.size}"
    if ORDERS.search(name):
        return "places 4096"
    return f"below {1 << 31 if PACKED.search(name) else 4}"


def integers(name: str, count: int, trial: Trial, generator):
    """The same as a tensor."""
    import torch

    places = torch.arange(count, device="cuda")
    what, _, number = contents(name, trial).partition(" ")
    if what == "starts":
        return places.clamp(max=64) * int(number)
    if what == "pairs":  # of a sequence and a block in it
        return torch.where(places % 2 == 0, places // 4 % 4, places // 2 % 2)
    if what == "places":
        return places % int(number)
    if what == "below":
        return torch.randint(0, int(number), (count,), device="cuda", generator=generator)
    return torch.full_like(places, int(number or 0))


def tensor_of(argument: Argument) -> tuple[list[int], list[int]]:
    """Shape and strides of the tensor that a descriptor describes: at least a block, its rows contiguous."""
    least = [4] * (len(argument.block) - 2) + [ROW] * min(len(argument.block), 2)
    shape = [max(pair) for pair in zip(least, argument.block)]
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return shape, strides


def is_table(argument: Argument) -> bool:
    """Whether memory is there for addresses of other memory."""
    return argument.kind == "pointer" and argument.element == "i64" and argument.name.lower().endswith("ptrs")


class Case:
    """Arguments of a trial. Memory of all pointers is one allocation: what is beyond one is another's, and compared."""

    def __init__(self, task: dict):
        import torch

        self.trial: Trial = task["trial"]
        self.grid, self.folder, self.ttir = task.get("grid", self.trial.grid), task["folder"], task["ttir"]
        self.arguments = arguments_of(self.ttir.read_text())
        tables = [f"*{one.name}" for one in self.arguments if is_table(one)]
        self.slots = [(one.name, one.element) for one in self.arguments if one.kind != "scalar"]
        self.slots += [(name, "bf16") for name in tables]
        self.initial = torch.zeros(len(self.slots) * SLOT, dtype=torch.uint8, device="cuda")
        self.live = torch.empty_like(self.initial)
        names = [name for name, _ in self.slots]
        generator = torch.Generator("cuda").manual_seed(zlib.crc32(f"{task['seed']} {task['id']}".encode()))
        for index, (name, element) in enumerate(self.slots):
            memory = self.memory(self.initial, index)[MARGIN // torch_type(element).itemsize :]
            if f"*{name}" in tables:
                memory.fill_(self.pointer(names.index(f"*{name}")).data_ptr())
            else:
                self._fill(memory, name, generator)
        numbers = numbers_of(self.arguments, self.trial)
        self.values = [
            numbers[one.name] if one.kind == "scalar" else self._pointed(one, names.index(one.name))
            for one in self.arguments
        ]

    def memory(self, whole, index: int):
        """What there is for a pointer, as elements of its type."""
        return whole[index * SLOT : (index + 1) * SLOT].view(torch_type(self.slots[index][1]))

    def pointer(self, index: int):
        memory = self.memory(self.live, index)
        return memory[MARGIN // memory.itemsize :]

    def _fill(self, memory, name: str, generator) -> None:
        import torch

        count = memory.numel()
        if memory.dtype in (torch.int8, torch.uint8) and EXPONENTS.search(name):
            made = torch.randint(126, 130, (count,), device="cuda", generator=generator)
            memory.copy_(made.to(torch.uint8).view(memory.dtype))
            return
        if memory.dtype.is_floating_point:
            scale = (0.1, 0.3, 1.0)[zlib.crc32(name.encode()) % 3]
            memory.copy_(torch.randn(count, device="cuda", generator=generator) * scale)
        elif memory.dtype in (torch.int8, torch.bool):
            least, most = (-8, 9) if memory.dtype == torch.int8 else (0, 2)
            memory.copy_(torch.randint(least, most, (count,), device="cuda", generator=generator, dtype=torch.int8))
        else:
            memory.copy_(integers(name, count, self.trial, generator))

    def _pointed(self, argument: Argument, index: int):
        from triton.tools.tensor_descriptor import TensorDescriptor

        if argument.kind == "pointer":
            return self.pointer(index)
        shape, strides = tensor_of(argument)
        return TensorDescriptor(self.pointer(index), shape, strides, list(argument.block))

    def stock(self, warps: int | None = None) -> Callable[[], object]:
        kernel = stock(self.ttir, warps or warps_of(self.folder))[self.grid]
        return lambda: kernel(*self.values)

    def ours(self) -> Callable[[], object]:
        return ours(self.folder).prepare(*self.values, grid=self.grid)

    def run(self, launch: Callable[[], object]):
        """The memory after a launch; the next one overwrites it."""
        import torch

        self.live.copy_(self.initial)
        launch()
        torch.cuda.synchronize()
        return self.live


def torch_type(element: str):
    import torch

    return getattr(torch, TORCH[element])
