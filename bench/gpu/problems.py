"""The examples' problems on random inputs: what a launch takes and gives, and what is right, in float64. Needs torch.

Every output is made full of NaN, with a strip of guard elements after it, so that what a kernel leaves out or writes
beyond its outputs shows.
"""

import math

import torch

LOG2_E = math.log2(math.e)
GUARD = 4096
"""Elements after every output; a multiple of what descriptors want their addresses to be."""
CHUNK = 1 << 26
"""Most float64 elements of a block of scores."""

# Largest relative errors ‖out − reference‖ / ‖reference‖ that pass. Rounding the result to float16 alone is about
# 2e-4, with P or dS rounded as well 3e-4 to 4e-4, also at length 16384.
LIMITS = {"o": 5e-4, "lse": 1e-4, "dq": 1e-3, "dk": 1e-3, "dv": 1e-3, "c": 5e-4, "y": 5e-4}


def problem(example: str, shape: dict, seed: int, device: str) -> "Problem":
    torch.manual_seed(seed)
    return PROBLEMS[example](shape, device)


def relative_error(out: torch.Tensor, reference: torch.Tensor) -> float:
    """‖out − reference‖ / ‖reference‖ in float64; NaN where the output has one."""
    total, difference = 0.0, 0.0
    for a, b in zip(out.reshape(-1).split(CHUNK), reference.reshape(-1).split(CHUNK), strict=True):
        difference += (a.double() - b.double()).square().sum().item()
        total += b.double().square().sum().item()
    return math.sqrt(difference / total)


class Problem:
    """Inputs, and the outputs' shapes and types under the names of LIMITS."""

    outputs: dict[str, tuple[tuple, torch.dtype]]

    def __init__(self, shape: dict, device: str):
        self.shape, self.device = shape, device

    def random(self, *shape: int, scale: float = 1.0) -> torch.Tensor:
        return (torch.randn(*shape, device=self.device, dtype=torch.float32) * scale).half()

    def allocate(self) -> dict:
        """Outputs as views of guarded memory."""
        out = {}
        for name, (shape, dtype) in self.outputs.items():
            memory = torch.empty(math.prod(shape) + GUARD, device=self.device, dtype=dtype)
            out[name] = memory[: math.prod(shape)].view(shape)
        self.reset(out)
        return out

    def reset(self, out: dict) -> None:
        """Poison the outputs and their guards."""
        for name, tensor in out.items():
            memory(tensor).fill_(math.nan)
            if name in self.accumulated():
                tensor.zero_()

    def accumulated(self) -> tuple:
        """Outputs that a kernel adds to, so they start at zero."""
        return ()

    def overrun(self, out: dict) -> list[str]:
        """Outputs with something written after their end."""
        return [name for name, tensor in out.items() if not memory(tensor)[tensor.numel() :].isnan().all().item()]

    def results(self, out: dict) -> dict:
        """Outputs in the form of the reference."""
        return out

    def whole(self, run, out: dict):
        """The launch with what must happen before and after it, and its results as a caller would get them."""
        return run, lambda: self.results(out)


def memory(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.as_strided((tensor.numel() + GUARD,), (1,))


class Attention(Problem):
    def __init__(self, shape: dict, device: str):
        super().__init__(shape, device)
        b, h, s, d = (shape[key] for key in ("batch", "heads", "length", "head_dim"))
        wide = d + shape.get("rope_dim", 0)
        self.size, self.causal, self.scale = (b, h, s, d), shape["causal"], wide**-0.5
        # A wider spread makes a few keys dominate and the running maximum move.
        self.q = self.random(b, h, s, wide, scale=shape.get("spread", 1))
        self.k, self.v = self.random(b, h, s, wide), self.random(b, h, s, d)

    def rows(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.view(-1, tensor.shape[-1])

    def heads(self, *tensors: torch.Tensor):
        """Each head's matrices in float64."""
        b, h = self.size[:2]
        for head in range(b * h):
            yield head, *(tensor.view(b * h, *tensor.shape[2:])[head].double() for tensor in tensors)

    def scores(self, q: torch.Tensor, k: torch.Tensor):
        """Blocks of queries with their scaled scores, masked where causal."""
        length = self.size[2]
        step = max(1, CHUNK // length)
        keys = torch.arange(length, device=self.device)
        for first in range(0, length, step):
            rows = slice(first, min(first + step, length))
            s = q[rows] @ k.T * self.scale
            if self.causal:
                s = s.masked_fill(keys[rows, None] < keys[None, :], -math.inf)
            yield rows, s

    def forward_reference(self) -> tuple[torch.Tensor, torch.Tensor]:
        """O and the base-2 log-sum-exp of every row."""
        b, h, length, d = self.size
        o = torch.empty(b * h, length, d, device=self.device, dtype=torch.float64)
        lse = torch.empty(b * h, length, device=self.device, dtype=torch.float64)
        for head, q, k, v in self.heads(self.q, self.k, self.v):
            for rows, s in self.scores(q, k):
                lse[head, rows] = torch.logsumexp(s, 1)
                o[head, rows] = torch.exp(s - lse[head, rows, None]) @ v
        return o.view(self.size), (lse * LOG2_E).view(b, h, length)


class AttentionForward(Attention):
    def __init__(self, shape: dict, device: str):
        super().__init__(shape, device)
        self.outputs = {"o": (self.size, torch.float16), "lse": (self.size[:3], torch.float32)}

    def reference(self) -> dict:
        o, lse = self.forward_reference()
        return {"o": o, "lse": lse}

    def arguments(self, out: dict) -> list:
        tensors = [self.rows(tensor) for tensor in (self.q, self.k, self.v, out["o"])]
        return [*tensors, out["lse"].view(-1), self.scale, self.size[2]]

    @staticmethod
    def blocks(c: dict) -> list:
        q, k = [c["BLOCK_M"], c["HEAD_DIM"]], [c["BLOCK_N"], c["HEAD_DIM"]]
        return [q, k, k, q, None, None, None]

    def grid(self, c: dict) -> tuple:
        b, h, length, _ = self.size
        return (length // c["BLOCK_M"], b * h, 1)


class LatentAttention(AttentionForward):
    """Rows of Q and K that are longer by what rotary embeddings turned, and come in two tiles."""

    def arguments(self, out: dict) -> list:
        q, k, *others = super().arguments(out)
        return [q, q, k, k, *others]

    def blocks(self, c: dict) -> list:
        q, k, *others = super().blocks(c)
        rope = self.shape["rope_dim"]
        return [q, [q[0], rope], k, [k[0], rope], *others]


class AttentionBackward(Attention):
    def __init__(self, shape: dict, device: str):
        super().__init__(shape, device)
        self.do = self.random(*self.size)
        o, lse = self.forward_reference()
        self.o, self.lse = o.half(), lse.float().view(-1)
        self.delta = (self.o.float() * self.do.float()).sum(-1).view(-1)
        gradient = (self.size, torch.float16)
        self.outputs = {"dq": (self.size, torch.float32), "dk": gradient, "dv": gradient}

    def accumulated(self) -> tuple:
        return ("dq",)

    def results(self, out: dict) -> dict:
        return out | {"dq": out["dq"] * self.scale}

    def whole(self, run, out: dict):
        """The backward pass from dO as libraries count it: delta, dQ at zero, the kernel, dQ scaled and rounded."""
        from bench.gpu import backward

        rounded = torch.empty(self.size, device=self.device, dtype=torch.float16)

        def everything() -> None:
            backward.row_dots(self.rows(self.o), self.rows(self.do), self.delta)
            out["dq"].zero_()
            run()
            backward.scaled(out["dq"], rounded, self.scale)

        return everything, lambda: out | {"dq": rounded}

    def reference(self) -> dict:
        gradients = [torch.zeros(self.q.shape, device=self.device, dtype=torch.float64) for _ in range(3)]
        dq, dk, dv = (tensor.view(-1, *self.size[2:]) for tensor in gradients)
        for head, q, k, v, do in self.heads(self.q, self.k, self.v, self.do):
            for rows, s in self.scores(q, k):
                p = torch.softmax(s, 1)
                dv[head] += p.T @ do[rows]
                dp = do[rows] @ v.T
                ds = p * (dp - (p * dp).sum(1, keepdim=True))
                dq[head, rows] = ds @ k * self.scale
                dk[head] += ds.T @ q[rows] * self.scale
        return dict(zip(("dq", "dk", "dv"), gradients, strict=True))

    def arguments(self, out: dict) -> list:
        tensors = [self.q, self.k, self.v, self.do, out["dq"], out["dk"], out["dv"]]
        return [*(self.rows(tensor) for tensor in tensors), self.lse, self.delta, self.scale, self.size[2]]

    @staticmethod
    def blocks(c: dict) -> list:
        q, k = [c["BLOCK_M"], c["HEAD_DIM"]], [c["BLOCK_N"], c["HEAD_DIM"]]
        return [q, k, k, q, q, k, k, None, None, None, None]

    def grid(self, c: dict) -> tuple:
        b, h, length, _ = self.size
        return (length // c["BLOCK_N"], b * h, 1)


class Product(Problem):
    """C = A · Bᵀ through descriptors."""

    def __init__(self, shape: dict, device: str):
        super().__init__(shape, device)
        self.m, self.n, self.k = shape["M"], shape["N"], shape["K"]
        self.make()

    def make(self) -> None:
        self.a, self.b = self.random(self.m, self.k), self.random(self.n, self.k)
        self.outputs = {"c": ((self.m, self.n), torch.float16)}

    def right(self) -> torch.Tensor:
        """The right factor as [K, N]."""
        return self.b.t()

    def reference(self) -> dict:
        return {"c": self.a.double() @ self.right().double()}

    def arguments(self, out: dict) -> list:
        return [self.a, self.b, out["c"], self.k]

    @staticmethod
    def blocks(c: dict) -> list:
        return [[c["BLOCK_M"], c["BLOCK_K"]], [c["BLOCK_N"], c["BLOCK_K"]], [c["BLOCK_M"], c["BLOCK_N"]], None]

    def grid(self, c: dict) -> tuple:
        return (-(-self.m // c["BLOCK_M"]), -(-self.n // c["BLOCK_N"]), 1)


class PointerProduct(Product):
    """C = A · B through pointers."""

    def make(self) -> None:
        self.a, self.b = self.random(self.m, self.k), self.random(self.k, self.n)
        self.outputs = {"c": ((self.m, self.n), torch.float16)}

    def right(self) -> torch.Tensor:
        return self.b

    def arguments(self, out: dict) -> list:
        strides = [tensor.stride(0) for tensor in (self.a, self.b, out["c"])]
        return [self.a, self.b, out["c"], self.m, self.n, self.k, *strides]

    @staticmethod
    def blocks(c: dict) -> list:
        return [None] * 9


class GatheredProduct(Product):
    """C = A[list] · Bᵀ, the list's rows of A in any order."""

    def make(self) -> None:
        super().make()
        self.list = torch.randperm(2 * self.m, device=self.device)[: self.m].to(torch.int32)
        self.every = self.random(2 * self.m, self.k)
        self.a = self.every[self.list.long()]

    def arguments(self, out: dict) -> list:
        return [self.every, self.list, self.b, out["c"], self.m, self.k, self.every.stride(0)]

    @staticmethod
    def blocks(c: dict) -> list:
        return [None, None, [c["BLOCK_N"], c["BLOCK_K"]], [c["BLOCK_M"], c["BLOCK_N"]], None, None, None]


class NormedProduct(Product):
    """Y = (X / √(mean(X²) + ε)) · Wᵀ."""

    epsilon = 1e-6

    def make(self) -> None:
        # Rows of several sizes: without the norm they would show.
        self.x = (self.random(self.m, self.k) * torch.rand(self.m, 1, device=self.device)).half()
        self.w = self.random(self.n, self.k)
        self.outputs = {"y": ((self.m, self.n), torch.float16)}

    def reference(self) -> dict:
        x = self.x.double()
        return {"y": x / (x.square().mean(1, keepdim=True) + self.epsilon).sqrt() @ self.w.double().T}

    def arguments(self, out: dict) -> list:
        return [self.x, self.w, out["y"], self.epsilon, self.k]

    @staticmethod
    def blocks(c: dict) -> list:
        tiles = [[c["BLOCK_M"], c["BLOCK_K"]], [c["BLOCK_N"], c["BLOCK_K"]], [c["BLOCK_M"], c["BLOCK_N"]]]
        return [*tiles, None, None]


class BiasGelu(Product):
    """Y = GELU(X · Wᵀ + b) + R."""

    def make(self) -> None:
        self.x, self.w = self.random(self.m, self.k), self.random(self.n, self.k, scale=self.k**-0.5)
        self.bias = torch.randn(self.n, device=self.device)
        self.r = self.random(self.m, self.n)
        self.outputs = {"y": ((self.m, self.n), torch.float16)}

    def reference(self) -> dict:
        sums = self.x.double() @ self.w.double().T + self.bias.double()
        return {"y": torch.nn.functional.gelu(sums) + self.r.double()}

    def arguments(self, out: dict) -> list:
        return [self.x, self.w, self.bias, self.r, out["y"], self.m, self.n, self.k]

    @staticmethod
    def blocks(c: dict) -> list:
        result = [c["BLOCK_M"], c["BLOCK_N"]]
        tiles = [[c["BLOCK_M"], c["BLOCK_K"]], [c["BLOCK_N"], c["BLOCK_K"]], None, result, result]
        return [*tiles, None, None, None]

    def grid(self, c: dict) -> tuple:
        return (math.prod(super().grid(c)), 1, 1)


class SwiGlu(Product):
    """Y = silu(X · Gᵀ) ∘ (X · Uᵀ)."""

    def make(self) -> None:
        self.x = self.random(self.m, self.k)
        # So that the dots are about one and nothing saturates.
        self.gate, self.up = (self.random(self.n, self.k, scale=self.k**-0.5) for _ in range(2))
        self.outputs = {"y": ((self.m, self.n), torch.float16)}

    def reference(self) -> dict:
        x = self.x.double()
        gate, up = x @ self.gate.double().T, x @ self.up.double().T
        return {"y": gate * torch.sigmoid(gate) * up}

    def arguments(self, out: dict) -> list:
        return [self.x, self.gate, self.up, out["y"], self.k]

    @staticmethod
    def blocks(c: dict) -> list:
        weights = [c["BLOCK_N"], c["BLOCK_K"]]
        return [[c["BLOCK_M"], c["BLOCK_K"]], weights, weights, [c["BLOCK_M"], c["BLOCK_N"]], None]


PROBLEMS = {
    "attention_forward": AttentionForward,
    "attention_mla": LatentAttention,
    "attention_backward": AttentionBackward,
    "attention_backward_causal": AttentionBackward,
    "gemm_tma": Product,
    "gemm_pointers": PointerProduct,
    "swiglu": SwiGlu,
    "gemm_bias_gelu": BiasGelu,
    "gemm_rmsnorm": NormedProduct,
    "gemm_gathered": GatheredProduct,
}
