"""FlagGems: torch's operators in Triton."""

import functools

from ..case import case


def matrices(*shapes, dtype="bfloat16"):
    """Random matrices."""
    import torch

    return [torch.randn(shape, device="cuda", dtype=getattr(torch, dtype)) for shape in shapes]


def in_double(function, *inputs):
    """What a function of torch gives for these inputs in float64."""
    return lambda: [function(*(x.double() for x in inputs))]


def product(m, n, k, dtype="bfloat16"):
    import torch
    from flag_gems import mm

    a, b = matrices((m, k), (k, n), dtype=dtype)
    return lambda: [mm(a, b)], in_double(torch.mm, a, b)


for m, n, k in ((4096, 4096, 4096), (2048, 8192, 1024), (1000, 3000, 2000), (128, 8192, 8192)):
    case("flag_gems", f"mm_{m}x{n}x{k}")(functools.partial(product, m, n, k))
case("flag_gems", "mm_f16_4096")(functools.partial(product, 4096, 4096, 4096, "float16"))


@case("flag_gems")
def bmm():
    import torch
    from flag_gems import bmm

    a, b = matrices((32, 1024, 512), (32, 512, 1024))
    return lambda: [bmm(a, b)], in_double(torch.bmm, a, b)


@case("flag_gems")
def addmm():
    import torch
    from flag_gems import addmm

    bias, a, b = matrices((4096,), (4096, 2048), (2048, 4096))
    return lambda: [addmm(bias, a, b)], in_double(torch.addmm, bias, a, b)


def attention(is_causal, head_dim):
    import torch
    from flag_gems import scaled_dot_product_attention

    q, k, v = matrices(*[(4, 16, 2048, head_dim)] * 3)

    def call():
        with torch.no_grad():
            return [scaled_dot_product_attention(q, k, v, is_causal=is_causal)]

    def reference():
        heads = (x[:1].double() for x in (q, k, v))
        return [torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=is_causal)]

    return call, reference


for is_causal in (False, True):
    for head_dim in (64, 128):
        name = f"attention_d{head_dim}{'_causal' if is_causal else ''}"
        case("flag_gems", name)(functools.partial(attention, is_causal, head_dim))


@case("flag_gems")
def attention_backward():
    import torch
    from flag_gems import scaled_dot_product_attention

    q, k, v = (x.requires_grad_() for x in matrices(*[(4, 16, 2048, 128)] * 3))
    gradient = torch.randn_like(q)

    def call():
        for x in (q, k, v):
            x.grad = None
        result = scaled_dot_product_attention(q, k, v, is_causal=True)
        result.backward(gradient)
        return [result.detach(), q.grad, k.grad, v.grad]

    return call


@case("flag_gems")
def grouped_mm():
    import torch
    from flag_gems import group_mm

    a, b = matrices((4096, 2048), (8, 2048, 4096))
    ends = torch.tensor([300, 800, 1500, 1600, 2500, 3000, 3900, 4096], device="cuda", dtype=torch.int32)

    def reference():
        starts = [0, *ends.tolist()]
        parts = [a[x:y].double() @ b[i].double() for i, (x, y) in enumerate(zip(starts, starts[1:]))]
        return [torch.cat(parts)]

    return lambda: [group_mm(a, b, ends)], reference
