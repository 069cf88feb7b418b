"""Runs the kernels of a program on a GPU, and compares what is in memory afterwards."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.differential.arguments import torch_type
from bench.differential.comparing import Difference, measure
from bench.differential.sides import ours, stock

from .program import ELEMENTS, Call, Pointer, Program
from .sides import STOCK_WARPS

AS_INTERPRETED = "as interpreted"
"""The verdict where stock Triton's result is another one, and the interpreter's is the same."""
GUARD = 4096
"""Bytes before and after a pointer's memory, which nobody may change."""
AT_ONCE = 1 << 26
"""Elements that are made at once."""
SHORT = {"fp16": "f16", "bf16": "bf16", "fp32": "f32", "fp64": "f64", "fp8e4nv": "f8E4M3FN", "fp8e5": "f8E5M2"}
"""Names of elements in TTIR that are others than in a signature."""


def contents(pointer: Pointer, index: int, begin: int, end: int):
    """What is in some of the memory before a call: a function of the place alone, as in `twill-fuzz/src/bin/interpret.rs`."""
    import torch

    element = torch_type(short(pointer))
    if pointer.contents == "zeros":
        return torch.zeros(end - begin, dtype=element, device="cuda")
    low = (1 << 32) - 1
    h = (torch.arange(begin, end, device="cuda") * 0x9E3779B1 + index * 0x85EBCA6B) & low
    h = h ^ (h >> 15)
    h = (h * 0x2C1B3C6D) & low
    h = h ^ (h >> 12)
    if pointer.contents.startswith("below"):
        return (h % int(pointer.contents.split()[1])).to(element)
    numbers = ((h % 17 - 8) / 4).to(element) if element.is_floating_point else (h % 9 - 4).to(element)
    if pointer.contents == "numbers":
        return numbers
    limits = torch.finfo(element)
    special = [0.0, -0.0, 1.0, -1.5, limits.max, limits.min, limits.tiny, -limits.tiny, limits.smallest_normal / 4]
    special += [] if element == torch.float8_e4m3fn else [float("inf"), float("-inf")]
    special += [] if pointer.contents == "infinite" else [float("nan")]
    of_place = torch.tensor(special, dtype=torch.float64, device="cuda").to(element)
    if pointer.contents != "few special":
        return of_place[(h >> 7) % len(special)]
    return numbers.float().where((h >> 20) % 500 != 0, of_place[(h >> 7) % len(special)].float()).to(element)


def short(pointer: Pointer) -> str:
    kind = ELEMENTS[pointer.element]
    return SHORT.get(kind, kind)


@dataclass
class Case:
    """Memory of a call, all of it in one allocation; `bench.differential` compares it."""

    program: Program
    call: Call

    def __post_init__(self) -> None:
        import torch

        self.places, end = [], 0
        names = [one.name for one in self.program.pointers]
        for one in self.program.pointers:
            if one.same_as:
                self.places.append(self.places[names.index(one.same_as)])
                continue
            size = torch_type(short(one)).itemsize
            begin = end + GUARD + (0 if one.aligned else size)
            self.places.append((end, begin, -(-(begin + one.count * size + GUARD) // 256) * 256))
            end = self.places[-1][2]
        self.slots = [(one.name, short(one)) for one in self.program.pointers]
        self.initial = torch.full((end,), 0x5A, dtype=torch.uint8, device="cuda")
        for index, one in enumerate(self.program.pointers):
            own = self.own(self.initial, index)
            for begin in () if one.same_as else range(0, one.count, AT_ONCE):
                last = min(begin + AT_ONCE, one.count)
                own[begin:last] = contents(one, index, begin, last)
        self.live = torch.empty_like(self.initial)

    def memory(self, whole, index: int):
        """What there is around a pointer, as elements of its type."""
        begin, _, end = self.places[index]
        return whole[begin:end].view(torch_type(self.slots[index][1]))

    def own(self, whole, index: int):
        """A pointer's elements."""
        begin, one = self.places[index][1], self.program.pointers[index]
        element = torch_type(self.slots[index][1])
        return whole[begin : begin + one.count * element.itemsize].view(element)

    def values(self) -> list:
        pointers = [self.own(self.live, index)[one.first :] for index, one in enumerate(self.program.pointers)]
        return pointers + list(self.call.numbers.values())

    def run(self, launch: Callable[[], object]):
        import torch

        self.live.copy_(self.initial)
        launch()
        torch.cuda.synchronize()
        return self.live.clone()

    def expected(self, path: Path):
        """Memory as the interpreter has it."""
        import torch

        result, data, at = self.initial.clone(), path.read_bytes(), 0
        for index in range(len(self.slots)):
            (count,) = struct.unpack_from("<I", data, at)
            places = torch.frombuffer(bytearray(data[at + 4 : at + 4 + 4 * count]), dtype=torch.int32) if count else None
            at += 4 + 4 * count
            if count:
                values = torch.frombuffer(bytearray(data[at : at + 8 * count]), dtype=torch.float64)
                own = self.own(result, index)
                own[places.long().cuda()] = values.cuda().to(own.dtype)
            at += 8 * count
        return result


def compare(task: dict, stage: Callable[[str], None]) -> dict:
    """Runs each side of a program for each call: `verdicts`, by side and call, and `notes` on what is not equal."""
    folder, program = task["folder"], Program.read(task["folder"])
    verdicts: dict[str, list[str]] = {}
    notes: list[str] = []
    ttir = folder / "kernel.ttir"
    for number, call in enumerate(program.calls):
        case = Case(program, call)
        stage("stock")
        kernel = stock(ttir, STOCK_WARPS)[call.grid]
        first = case.run(lambda: kernel(*case.values()))
        again = case.run(lambda: kernel(*case.values()))
        _, varying = measure(case, first, again)
        if varying:
            notes.append(f"call {number}: stock varies")
            continue
        has_interpreter = "interpreter" in task["sides"]
        interpreted = case.expected(folder / f"expected-{number}.bin") if has_interpreter else None
        of_call: dict[str, str] = {}
        for side in task["sides"]:
            stage(side)
            if side == "interpreter":
                result = interpreted
            else:
                launch = ours(folder / side).prepare(*case.values(), grid=call.grid)
                result = case.run(launch)
            found, beyond = measure(case, first, result)
            of_call[side] = "close" if found.differing else "equal" if found.changed else "nothing"
            if beyond:
                is_other = interpreted is None or side == "interpreter" or measure(case, interpreted, result)[1]
                of_call[side] = "DIFFERENT" if is_other else AS_INTERPRETED
                notes.append(f"call {number}, {side}: {figures(found)}")
        # Two that agree and know nothing of each other are right.
        if of_call.get("interpreter") == "DIFFERENT" and AS_INTERPRETED in of_call.values():
            of_call["interpreter"] = AS_INTERPRETED
        for side, verdict in of_call.items():
            verdicts.setdefault(side, []).append(verdict)
    return {"verdicts": verdicts, "notes": notes}


def figures(found: Difference) -> str:
    return (
        f"{found.beyond} of {found.changed} beyond tolerance, by {found.most:.3g}, relative {found.relative:.3g}, "
        f"in {' '.join(found.where)}"
    )
