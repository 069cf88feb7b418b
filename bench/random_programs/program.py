"""A random program: its source, and how it is called."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

ELEMENTS = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "float8e4nv": "fp8e4nv",
    "float8e5": "fp8e5",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
}
"""Types of elements by their name in `triton.language`, and in a signature."""
TORCH = {"float8e4nv": "float8_e4m3fn", "float8e5": "float8_e5m2"}
"""Those with another name in PyTorch."""


@dataclass(frozen=True)
class Pointer:
    """Memory that a program gets: so many elements, and what is in them at the beginning."""

    name: str
    element: str
    count: int
    contents: str
    """`numbers`: small multiples of a quarter, or small integers; `zeros`; `below N`: integers from 0 to N − 1; `special`: NaN,
    infinities, zeros of both signs, denormals, the largest and the least; `infinite`: these without NaN; `few special`: numbers
    with some of these."""
    aligned: bool = True
    """Whether it begins at a multiple of 16 bytes, as the compiler is told; else at an element after one."""
    first: int = 0
    """Which element is pointed to."""
    same_as: str = ""
    """An earlier pointer whose memory it is, too."""


@dataclass(frozen=True)
class Call:
    """Programs of the grid, and a value for each number that the kernel takes."""

    grid: tuple[int, int, int]
    numbers: dict[str, int]


@dataclass
class Program:
    """A kernel named `kernel`, that takes pointers and then numbers."""

    seed: int
    source: str
    pointers: list[Pointer]
    multiples: list[str]
    """Numbers that are multiples of 16 in each call, as the compiler is told."""
    calls: list[Call] = field(default_factory=list)

    def signature(self) -> dict[str, str]:
        """Types of the parameters, as Triton writes them."""
        kinds = {one.name: f"*{ELEMENTS[one.element]}" + (":16" if one.aligned and not one.first else "") for one in self.pointers}
        for name in self.calls[0].numbers:
            kind = "i64" if any(abs(call.numbers[name]) >= 1 << 31 for call in self.calls) else "i32"
            kinds[name] = f"{kind}:16" if name in self.multiples else kind
        return kinds

    def write(self, folder: Path) -> None:
        """Writes the program to `kernel.py` and `program.json`."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kernel.py").write_text(self.source, encoding="utf-8")
        values = {name: value for name, value in asdict(self).items() if name != "source"}
        (folder / "program.json").write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "Program":
        """The program of a folder."""
        values = json.loads((folder / "program.json").read_text(encoding="utf-8"))
        values["pointers"] = [Pointer(**one) for one in values["pointers"]]
        values["calls"] = [Call(tuple(one["grid"]), one["numbers"]) for one in values["calls"]]
        return cls(source=(folder / "kernel.py").read_text(encoding="utf-8"), **values)
