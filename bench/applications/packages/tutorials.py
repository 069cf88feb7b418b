"""Triton's tutorials: 03, 08 and 09 as tritonbench has them, 06 as the examples do."""

import functools
import sys
import types

from bench.common import ROOT

from ..case import case


def matrices(*shapes):
    """Random matrices of f16."""
    import torch

    return [torch.randn(shape, device="cuda", dtype=torch.float16) for shape in shapes]


def product(function, m, n, k):
    import importlib

    # tritonbench's package of products imports what is not there, for calls that are not made here.
    sys.modules.setdefault("triton.tools.experimental_descriptor", types.ModuleType("experimental_descriptor"))
    operators = importlib.import_module("tritonbench.operators")
    package = types.ModuleType("tritonbench.operators.gemm")
    package.__path__ = [f"{folder}/gemm" for folder in operators.__path__]
    sys.modules.setdefault(package.__name__, package)
    module, name = function.rsplit(".", 1)
    multiply = getattr(importlib.import_module(f"tritonbench.operators.{module}"), name)
    a, b = matrices((m, k), (k, n))
    return lambda: [multiply(a, b)], lambda: [a.double() @ b.double()]


for m, n, k in ((4096, 4096, 4096), (4000, 3952, 4112), (512, 8192, 2048)):
    case("tutorials", f"t03_matmul_{m}x{n}x{k}")(functools.partial(product, "gemm.triton_matmul.matmul", m, n, k))
    persistent = "gemm.persistent_matmul.matmul_persistent"
    case("tutorials", f"t09_persistent_{m}x{n}x{k}")(functools.partial(product, persistent, m, n, k))


def attention(is_causal, head_dim):
    import torch
    import triton
    from triton.tools.tensor_descriptor import TensorDescriptor

    sys.path.insert(0, str(ROOT / "examples"))
    import tutorial_attention

    heads, length = 64, 4096
    q, k, v = matrices(*[(heads, length, head_dim)] * 3)
    # The best of the tutorial's tiles, as stock Triton finds it.
    configs = [
        triton.Config({"BLOCK_M": 128, "BLOCK_N": keys}, num_warps=warps, num_stages=stages, pre_hook=set_blocks)
        for keys in (64, 128)
        for warps in (4, 8)
        for stages in (2, 3)
    ]
    kernel = triton.autotune(configs, key=["N_CTX", "HEAD_DIM", "STAGE"])(tutorial_attention._attn_fwd)

    def call():
        o, m = torch.empty_like(q), torch.empty(heads, length, device="cuda", dtype=torch.float32)
        flat = [TensorDescriptor.from_tensor(x.view(-1, head_dim), [1, head_dim]) for x in (q, k, v, o)]
        kernel[lambda meta: (length // meta["BLOCK_M"], heads, 1)](
            head_dim**-0.5, m, 1, heads, *flat, length,
            HEAD_DIM=head_dim, STAGE=3 if is_causal else 1, warp_specialize=False,
        )
        return [o]

    def reference():
        some = (x[:4].double() for x in (q, k, v))
        return [torch.nn.functional.scaled_dot_product_attention(*some, is_causal=is_causal)]

    return call, reference


def set_blocks(arguments):
    """The tutorial's hook: descriptors have the tiles of a configuration."""
    for name in ("q", "k", "v", "o"):
        rows = arguments["BLOCK_N" if name in "kv" else "BLOCK_M"]
        arguments[f"desc_{name}"].block_shape = [rows, arguments["HEAD_DIM"]]


for is_causal in (False, True):
    for head_dim in (64, 128):
        name = f"t06_attention_d{head_dim}{'_causal' if is_causal else ''}"
        case("tutorials", name)(functools.partial(attention, is_causal, head_dim))


@case("tutorials")
def t08_grouped():
    from tritonbench.operators.grouped_gemm.kernels import triton_group_gemm_fn

    sizes = (2048, 1024, 512, 256)
    left, right = matrices(*[(m, m) for m in sizes]), matrices(*[(m, m) for m in sizes])
    return lambda: triton_group_gemm_fn(left, right), lambda: [a.double() @ b.double() for a, b in zip(left, right)]
