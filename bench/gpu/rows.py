"""The rows of the GPU benchmark: what is computed, at which size, and what should be reached. No torch."""

import math
from dataclasses import dataclass, field

CUDNN = "cuDNN"
FLASH = "FlashAttention CuTe"
CUBLAS = "cuBLAS"
STOCK = "stock Triton"
HAND = "hand-written Gluon"
HAND_CUDA = "hand-written CUDA"
NAIVE = "naive schedule"
PEERS = [CUDNN, FLASH, CUBLAS, STOCK, HAND, HAND_CUDA, NAIVE]


@dataclass(frozen=True)
class Target:
    """A ratio of speeds, ours to the peer's: what should be reached and what would be better still."""

    peer: str
    reach: float
    stretch: float | None = None


@dataclass(frozen=True)
class Row:
    """One problem at one size. `example` is the module and kernel of examples/ that computes it."""

    name: str
    example: str
    shape: dict
    targets: list[Target] = field(default_factory=list)

    def flops(self) -> float:
        """Multiplications and additions of the dots, as the field counts them: a causal mask halves them."""
        s = self.shape
        if self.example in ("attention_forward", "attention_backward"):
            dots = 2 if self.example == "attention_forward" else 5
            pairs = s["batch"] * s["heads"] * s["length"] ** 2 / (2 if s["causal"] else 1)
            return dots * 2 * pairs * s["head_dim"]
        return (4 if self.example == "swiglu" else 2) * s["M"] * s["N"] * s["K"]

    def size(self) -> str:
        s = self.shape
        if "M" in s:
            return f"{s['M']} × {s['N']} × {s['K']}"
        mask = ", causal" if s["causal"] else ""
        return f"batch {s['batch']}, {s['heads']} heads, length {s['length']}, head dim {s['head_dim']}{mask}"


def attention(example: str, batch: int, heads: int, length: int, head_dim: int, *targets: Target, causal=False) -> Row:
    direction = example.removeprefix("attention_")
    name = f"{direction}{'-causal' if causal else ''}-d{head_dim}-{length // 1024}k"
    shape = dict(batch=batch, heads=heads, length=length, head_dim=head_dim, causal=causal)
    return Row(name, example, shape, [*targets, Target(STOCK, 1.00)])


def forward(*where, causal=False) -> Row:
    return attention("attention_forward", *where, causal=causal)


def backward(*where) -> Row:
    return attention("attention_backward", *where)


def product(name: str, example: str, m: int, n: int, k: int, *targets: Target) -> Row:
    return Row(name, example, dict(M=m, N=n, K=k), list(targets))


BY_HAND = Target(HAND, 0.98, 1.00)
BLAS = Target(CUBLAS, 0.98, 1.03)
NO_SLOWER = Target(STOCK, 1.00)

# The most telling first: what comes last is left out when time runs short.
ROWS = [
    forward(1, 16, 16384, 128, Target(FLASH, 0.97, 1.00), BY_HAND),
    product("gemm-8192", "gemm_tma", 8192, 8192, 8192, BLAS, BY_HAND, NO_SLOWER),
    backward(1, 16, 16384, 128, Target(FLASH, 0.80, 1.00)),
    forward(16, 16, 1024, 128, Target(CUDNN, 1.05, 1.10), BY_HAND),
    forward(1, 16, 16384, 128, Target(FLASH, 0.95, 1.00), BY_HAND, causal=True),
    forward(1, 32, 16384, 64, Target(FLASH, 0.95, 1.00), BY_HAND),
    product("gemm-4096", "gemm_tma", 4096, 4096, 4096, BLAS, BY_HAND, NO_SLOWER),
    product("swiglu", "swiglu", 8192, 4096, 4096, Target(STOCK, 1.10, 1.30)),
    forward(4, 16, 4096, 128, BY_HAND),
    forward(4, 16, 4096, 128, BY_HAND, causal=True),
    forward(1, 32, 16384, 64, causal=True),
    backward(1, 32, 16384, 64),
    product("gemm-pointers-4096", "gemm_pointers", 4096, 4096, 4096, NO_SLOWER),
]


def small(row: Row) -> Row:
    """The row at a size that Triton's interpreter can do on a CPU, for rehearsals."""
    if "M" in row.shape:
        return Row(row.name, row.example, dict(M=256, N=128, K=128), row.targets)
    return Row(row.name, row.example, row.shape | dict(batch=1, heads=2, length=256), row.targets)


def check_shapes(example: str, constants: dict, whole: int = 1, least: int = 1) -> list[dict]:
    """Sizes for checking a kernel of these constants: loops of one, two, three and many trips, few programs and more
    than a GPU has multiprocessors, also in whole waves of 132, and for kernels with masks also sizes that no tile
    divides. Along the first axis of the grid there is a multiple of `whole` programs, and loops go over `least` elements
    or more."""
    c = constants
    if example in ("attention_forward", "attention_backward"):
        along_x = "BLOCK_M" if example == "attention_forward" else "BLOCK_N"
        unit = math.lcm(c["BLOCK_M"], c["BLOCK_N"], c[along_x] * whole)
        kind = dict(head_dim=c["HEAD_DIM"], causal=c.get("CAUSAL", False))
        sizes = [(1, 1, 1, 1), (2, 3, 1, 1), (1, 2, 2, 1), (2, 1, 3, 1), (1, 3, 5, 3), (1, 40, 10, 1), (1, 132, 4, 1)]
        return [
            dict(batch=batch, heads=heads, length=unit * times, spread=spread, **kind)
            for batch, heads, times, spread in sizes
            if unit * times >= least
        ]
    m, n, k = c["BLOCK_M"] * whole, c["BLOCK_N"], c["BLOCK_K"]
    sizes = [(m, n, k), (m, 2 * n, 2 * k), (3 * m, 2 * n, 3 * k), (2 * m, 3 * n, 7 * k), (20 * m, 14 * n, 16 * k)]
    if example == "gemm_pointers":
        sizes += [(3 * m - 48, 2 * n - 80, 3 * k), (m + 16, n + 16, 3 * k + 16), (16, 16, 16)]
    return [dict(M=m, N=n, K=k) for m, n, k in sizes if -(-m // c["BLOCK_M"]) % whole == 0]
