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
ATTENTION = ("attention_forward", "attention_mla", "attention_backward", "attention_backward_causal")
MASKED = ("gemm_pointers", "gemm_bias_gelu", "gemm_rmsnorm", "gemm_gathered")
"""Products of any size, by masks or by what descriptors do at edges."""
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
        if self.example in ATTENTION:
            pairs = s["batch"] * s["heads"] * s["length"] ** 2 / (2 if s["causal"] else 1)
            dots = 5 if self.example.startswith("attention_backward") else 2
            return 2 * pairs * (dots * s["head_dim"] + s.get("rope_dim", 0))
        return (4 if self.example == "swiglu" else 2) * s["M"] * s["N"] * s["K"]

    def size(self) -> str:
        s = self.shape
        if "M" in s:
            return f"{s['M']} × {s['N']} × {s['K']}"
        mask = ", causal" if s["causal"] else ""
        dim = f"{s['head_dim'] + s['rope_dim']} and {s['head_dim']}" if "rope_dim" in s else s["head_dim"]
        return f"batch {s['batch']}, {s['heads']} heads, length {s['length']}, head dim {dim}{mask}"


def libraries(reach: float) -> list[Target]:
    """Against the better of both, a bar each."""
    return [Target(FLASH, reach), Target(CUDNN, reach)]


def attention(example: str, batch: int, heads: int, length: int, head_dim: int, reach: float, causal=False) -> Row:
    direction = example.removeprefix("attention_").removesuffix("_causal")
    name = f"{direction}{'-causal' if causal else ''}-d{head_dim}-{length // 1024}k"
    shape = dict(batch=batch, heads=heads, length=length, head_dim=head_dim, causal=causal)
    return Row(name, example, shape, [*libraries(reach), Target(STOCK, 1.00)])


def forward(*where, causal=False) -> Row:
    return attention("attention_forward", *where, causal=causal)


def backward(*where, causal=False) -> Row:
    return attention("attention_backward_causal" if causal else "attention_backward", *where, causal=causal)


def product(name: str, example: str, m: int, n: int, k: int, *targets: Target) -> Row:
    return Row(name, example, dict(M=m, N=n, K=k), list(targets))


LATENT = dict(batch=1, heads=16, length=16384, head_dim=128, rope_dim=64, causal=False)
NO_SLOWER = Target(STOCK, 1.00)
POINTWISE = Target(CUBLAS, 1.00)
"""Where a library's product has what surrounds it compiled by torch."""
UNEVEN = (4000, 3952, 4112)
"""Rows, columns and depth that no tile divides; multiples of 16, as tensor descriptors want strides."""

# The most telling first: what comes last is left out when time runs short.
ROWS = [
    forward(1, 16, 16384, 128, 1.02),
    product("gemm-8192", "gemm_tma", 8192, 8192, 8192, Target(CUBLAS, 1.03), NO_SLOWER),
    backward(1, 16, 16384, 128, 1.02),
    forward(16, 16, 1024, 128, 1.10),
    forward(1, 16, 16384, 128, 1.03, causal=True),
    forward(1, 32, 16384, 64, 1.02),
    product("gemm-4096", "gemm_tma", 4096, 4096, 4096, Target(CUBLAS, 1.03), NO_SLOWER),
    product("swiglu", "swiglu", 8192, 4096, 4096, Target(CUBLAS, 1.00), Target(STOCK, 1.10)),
    forward(4, 16, 4096, 128, 1.02),
    forward(4, 16, 4096, 128, 1.03, causal=True),
    forward(16, 16, 1024, 128, 1.03, causal=True),
    forward(1, 32, 16384, 64, 1.02, causal=True),
    backward(1, 32, 16384, 64, 1.00),
    product("gemm-pointers-4096", "gemm_pointers", 4096, 4096, 4096, Target(STOCK, 1.05)),
    product("gemm-pointers-uneven", "gemm_pointers", *UNEVEN, Target(STOCK, 1.05)),
    product("gemm-gelu-4096", "gemm_bias_gelu", 4096, 4096, 4096, Target(STOCK, 1.10), POINTWISE),
    product("gemm-gelu-uneven", "gemm_bias_gelu", *UNEVEN, Target(STOCK, 1.10), POINTWISE),
    product("gemm-rmsnorm-4096", "gemm_rmsnorm", 4096, 4096, 4096, Target(STOCK, 1.20)),
    product("gemm-gathered-4096", "gemm_gathered", 4096, 4096, 4096, Target(STOCK, 1.10)),
    backward(4, 16, 4096, 128, 1.02),
    backward(1, 16, 16384, 128, 1.02, causal=True),
    backward(4, 16, 4096, 128, 1.02, causal=True),
    product("gemm-2048", "gemm_tma", 2048, 2048, 2048, Target(CUBLAS, 1.00), NO_SLOWER),
    product("gemm-16384x1024x4096", "gemm_tma", 16384, 1024, 4096, Target(CUBLAS, 1.00), NO_SLOWER),
    forward(1, 8, 16384, 256, 1.00),
    Row("forward-d192-16k", "attention_mla", LATENT, [*libraries(1.00), NO_SLOWER]),
]


def causal(example: str, constants: dict) -> bool:
    """Whether a kernel of these constants masks later keys."""
    return example == "attention_backward_causal" or constants.get("CAUSAL", False)


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
    if example in ATTENTION:
        along_x = "BLOCK_N" if example.startswith("attention_backward") else "BLOCK_M"
        unit = math.lcm(c["BLOCK_M"], c["BLOCK_N"], c[along_x] * whole)
        kind = dict(head_dim=c["HEAD_DIM"], causal=causal(example, c))
        if example == "attention_mla":
            kind |= dict(rope_dim=LATENT["rope_dim"])
        sizes = [(1, 1, 1, 1), (2, 3, 1, 1), (1, 2, 2, 1), (2, 1, 3, 1), (1, 3, 5, 3), (1, 40, 10, 1), (1, 132, 4, 1)]
        return [
            dict(batch=batch, heads=heads, length=unit * times, spread=spread, **kind)
            for batch, heads, times, spread in sizes
            if unit * times >= least
        ]
    m, n, k = c["BLOCK_M"] * whole, c["BLOCK_N"], c["BLOCK_K"]
    sizes = [(m, n, k), (m, 2 * n, 2 * k), (3 * m, 2 * n, 3 * k), (2 * m, 3 * n, 7 * k), (20 * m, 14 * n, 16 * k)]
    if example in MASKED:
        sizes += [(3 * m - 48, 2 * n - 80, 3 * k), (m + 16, n + 16, 3 * k + 16), (16, 16, 16)]
    return [dict(M=m, N=n, K=k) for m, n, k in sizes if -(-m // c["BLOCK_M"]) % whole == 0]
