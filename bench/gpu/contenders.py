"""Who computes a row: generated kernels, stock Triton, libraries, hand-written kernels. Needs torch."""

import importlib.util
import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from bench.common import ROOT
from bench.gpu import kernel_folders
from bench.gpu.kernel_folders import DEFAULTS, Generated
from bench.gpu.problems import Problem
from bench.gpu.rows import ATTENTION, CUBLAS, CUDNN, FLASH, HAND, HAND_CUDA, NAIVE, STOCK, Row

WARPS, STAGES = (8, 4), (3, 2, 4)


@dataclass(frozen=True)
class Launch:
    """A launch with everything prepared that does not belong to its time."""

    run: Callable[[], object]
    results: Callable[[], dict]
    """What the last run gave, in the form of the problem's reference; what a library does not give is left out."""
    poison: Callable[[], None] = lambda: None
    overrun: Callable[[], list] = list


@dataclass(frozen=True)
class Contender:
    name: str
    kind: str
    """"generated", "part" (a generated kernel without what surrounds it), or the peer as rows.py names it."""
    prepare: Callable[[Problem], Launch]


def contenders(
    row: Row, kernels: list[Generated], hand_written: Path | None, libraries: bool = True
) -> list[Contender]:
    """All but the stock compile, whose options are tried first."""
    found = []
    for kernel in (kernel for kernel in kernels if kernel.serves(row)):
        found.append(
            Contender(kernel.name, NAIVE if kernel.naive else "generated", lambda p, k=kernel: generated(k, p))
        )
        if row.example.startswith("attention_backward"):
            found.append(
                Contender(f"{kernel.name}, kernel alone", "part", lambda p, k=kernel: generated(k, p, whole=False))
            )
    if libraries:
        found += LIBRARIES[row.example]()
    if hand_written:
        found += by_hand(row, hand_written)
    return found


# ------------------------------------------------------------------------------------------------- the same source
def generated(kernel: Generated, problem: Problem, whole: bool = True) -> Launch:
    """A generated kernel with its descriptors built."""
    out = problem.allocate()
    grid = problem.grid(kernel_folders.exact(kernel).constants)
    run = kernel_folders.load(kernel).prepare(*problem.arguments(out), grid=grid)
    return surrounded(problem, run, out, whole)


def surrounded(problem: Problem, run: Callable[[], object], out: dict, whole: bool) -> Launch:
    results = lambda: problem.results(out)
    if whole:
        run, results = problem.whole(run, out)
    return Launch(run, results, lambda: problem.reset(out), lambda: problem.overrun(out))


def stock_options(row: Row, kernels: list[Generated]) -> dict[str, tuple[dict, dict]]:
    """What stock Triton may choose from, by name: the example's tiles and the generated kernels', warps, stages."""
    tiles = [DEFAULTS[row.example]] + [kernel.constants for kernel in kernels if kernel.serves(row)]
    found = {}
    for tile, warps, stages in itertools.product(tiles, WARPS, STAGES):
        constants = {key: tile[key] for key in DEFAULTS[row.example]}
        if row.example in ATTENTION:
            constants["HEAD_DIM"] = row.shape["head_dim"]
        if row.example == "attention_forward":
            constants["CAUSAL"] = row.shape["causal"]
        shape = " × ".join(str(value) for key, value in constants.items() if key.startswith("BLOCK"))
        found[f"{STOCK}, {shape}, {warps} warps, {stages} stages"] = (
            constants,
            dict(num_warps=warps, num_stages=stages),
        )
    return found


def stock(row: Row, problem: Problem, constants: dict, options: dict) -> Launch:
    """The example as Triton compiles it."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    out = problem.allocate()
    blocks = problem.blocks(constants)
    arguments = [
        argument if tile is None else TensorDescriptor.from_tensor(argument, tile)
        for argument, tile in zip(problem.arguments(out), blocks, strict=True)
    ]
    kernel = getattr(example(row.example), row.example)[problem.grid(constants)]
    return surrounded(problem, lambda: kernel(*arguments, **constants, **options), out, True)


def example(name: str) -> object:
    """The module examples/NAME.py."""
    module = f"twill_example_{name}"
    if module not in sys.modules:
        spec = importlib.util.spec_from_file_location(module, ROOT / "examples" / f"{name}.py")
        sys.modules[module] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[module])
    return sys.modules[module]


# ------------------------------------------------------------------------------------------------- libraries
def returning(run: Callable[[], dict]) -> Launch:
    """A launch of a library that returns its results."""
    last = {}

    def keep() -> None:
        last.update(run())

    return Launch(keep, lambda: last, last.clear)


def forward_libraries() -> list[Contender]:
    def cudnn(p: Problem) -> Launch:
        return returning(lambda: {"o": sdpa(p.q, p.k, p.v, p.causal)})

    def flash(p: Problem) -> Launch:
        attend = flash_attention()
        q, k, v = (tensor.transpose(1, 2).contiguous() for tensor in (p.q, p.k, p.v))
        last = []

        def run() -> None:
            last[:] = [attend(q, k, v, causal=p.causal)]

        return Launch(run, lambda: {"o": first(last[0]).transpose(1, 2)}, last.clear)

    return [Contender(CUDNN, CUDNN, cudnn), Contender(FLASH, FLASH, flash)]


def backward_libraries() -> list[Contender]:
    def gradients(out: torch.Tensor, inputs: list, do: torch.Tensor, form: Callable) -> Launch:
        def run() -> dict:
            return dict(zip(("dq", "dk", "dv"), torch.autograd.grad(out, inputs, do, retain_graph=True), strict=True))

        launch = returning(run)
        return Launch(
            launch.run, lambda: {name: form(tensor) for name, tensor in launch.results().items()}, launch.poison
        )

    def cudnn(p: Problem) -> Launch:
        inputs = [tensor.detach().clone().requires_grad_() for tensor in (p.q, p.k, p.v)]
        return gradients(sdpa(*inputs, p.causal), inputs, p.do, lambda tensor: tensor)

    def flash(p: Problem) -> Launch:
        attend = flash_attention()
        inputs = [tensor.detach().transpose(1, 2).contiguous().requires_grad_() for tensor in (p.q, p.k, p.v)]
        out = first(attend(*inputs, causal=p.causal))
        return gradients(out, inputs, p.do.transpose(1, 2).contiguous(), lambda tensor: tensor.transpose(1, 2))

    return [Contender(CUDNN, CUDNN, cudnn), Contender(FLASH, FLASH, flash)]


def product_libraries() -> list[Contender]:
    def cublas(p: Problem) -> Launch:
        out = p.allocate()
        right = p.right()
        return surrounded(p, lambda: torch.mm(p.a, right, out=out["c"]), out, True)

    return [Contender(CUBLAS, CUBLAS, cublas)]


def swiglu_libraries() -> list[Contender]:
    def cublas(p: Problem) -> Launch:
        return returning(lambda: {"y": torch.nn.functional.silu(p.x @ p.gate.t()) * (p.x @ p.up.t())})

    return [Contender(f"{CUBLAS} and torch", CUBLAS, cublas)]


def around_product(compute: Callable[[Problem], Callable], inputs: Callable[[Problem], tuple]) -> list[Contender]:
    """cuBLAS's product with what is before and after it compiled by torch."""

    def cublas(p: Problem) -> Launch:
        run, given = torch.compile(compute(p)), inputs(p)
        return returning(lambda: {"y": run(*given)})

    return [Contender(f"{CUBLAS} and torch.compile", CUBLAS, cublas)]


def fused_libraries() -> list[Contender]:
    def layer(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
        return (torch.nn.functional.gelu((x @ w.t()).float() + bias) + r).half()

    return around_product(lambda _: layer, lambda p: (p.x, p.w, p.bias, p.r))


def normed_libraries() -> list[Contender]:
    def normed(p: Problem) -> Callable:
        return lambda x, w: torch.nn.functional.rms_norm(x, x.shape[1:], eps=p.epsilon) @ w.t()

    return around_product(normed, lambda p: (p.x, p.w))


def gathered_libraries() -> list[Contender]:
    def cublas(p: Problem) -> Launch:
        out, right = p.allocate(), p.right()
        return surrounded(p, lambda: torch.mm(p.every[p.list], right, out=out["c"]), out, True)

    return [Contender(f"{CUBLAS} of copied rows", CUBLAS, cublas)]


LIBRARIES = {
    "attention_forward": forward_libraries,
    "attention_mla": forward_libraries,
    "attention_backward": backward_libraries,
    "attention_backward_causal": backward_libraries,
    "gemm_tma": product_libraries,
    "gemm_pointers": product_libraries,
    "swiglu": swiglu_libraries,
    "gemm_bias_gelu": fused_libraries,
    "gemm_rmsnorm": normed_libraries,
    "gemm_gathered": gathered_libraries,
}


def only_cudnn() -> None:
    """Leave scaled_dot_product_attention nothing but cuDNN; set once, since a context for each call costs host time."""
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_math_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(True)


def sdpa(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)


def flash_attention() -> Callable:
    from flash_attn.cute import flash_attn_func

    return flash_attn_func


def first(out: object) -> torch.Tensor:
    """O, where the log-sum-exp may come with it."""
    return out[0] if isinstance(out, tuple) else out


# ------------------------------------------------------------------------------------------------- hand-written kernels
def by_hand(row: Row, folder: Path) -> list[Contender]:
    """Kernels of the folder's bench_h200.py: tables D128, D64, CAUSAL of name -> make(q, k, v); gluon_gemm(a, b)."""
    if row.example == "gemm_tma":
        return [Contender(HAND, HAND, lambda p: hand_product(folder, p))]
    if row.example != "attention_forward":
        return []
    causal, d64 = row.shape["causal"], row.shape["head_dim"] == 64
    if causal and d64:
        return []
    table = "CAUSAL" if causal else "D64" if d64 else "D128"
    return [
        Contender(f"hand-written: {name}", written_in(name), lambda p, make=make: hand_attention(make, p))
        for name, make in getattr(hand_module(folder), table).items()
    ]


def written_in(name: str) -> str:
    """The language of a hand-written kernel, by which its name begins."""
    return HAND_CUDA if name.startswith("cuda") else HAND


def hand_module(folder: Path) -> object:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    import bench_h200

    return bench_h200


def hand_attention(make: Callable, p: Problem) -> Launch:
    run, o, lse = make(p.q, p.k, p.v)

    def poison() -> None:
        o.fill_(torch.nan)
        lse.fill_(torch.nan)

    return Launch(run, lambda: {"o": o, "lse": lse.view(p.size[:3])}, poison)


def hand_product(folder: Path, p: Problem) -> Launch:
    run, c = hand_module(folder).gluon_gemm(p.a, p.right().contiguous())
    return Launch(run, lambda: {"c": c}, lambda: c.fill_(torch.nan))
