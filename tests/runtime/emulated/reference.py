"""Inputs of the examples and what comes out of them in float64, by the kernel's name and constants (kernel.json)."""

import numpy as np

LOG2_E = 1.4426950408889634


def random(generator, *shape, scale=1.0):
    return (generator.standard_normal(shape) * scale).astype(np.float16)


class Case:
    """Tensors and numbers by the names of parameters, the grid, and what tensors should hold afterwards."""

    def __init__(self, kernel, trips, seed=0):
        self.constants, self.trips = kernel["constants"], trips
        self.generator = np.random.default_rng(seed)
        self.tensors, self.numbers, self.wanted = {}, {}, {}
        self.grid = (2, 1)
        getattr(self, kernel["name"])()
        self.numbers |= {"programs_x": self.grid[0], "programs_y": self.grid[1], "programs_z": 1}

    def errors(self):
        """The relative error of each result."""
        return {
            name: np.linalg.norm(self.tensors[name].astype(float) - wanted) / max(np.linalg.norm(wanted), 1e-30)
            for name, wanted in self.wanted.items()
        }

    def _product(self):
        m, n, k = (self.constants[f"BLOCK_{x}"] for x in "MNK")
        # Tensors are not empty; what is beyond K is not read.
        depth = max(self.trips * k, 8)
        return self.grid[0] * m, self.grid[1] * n, self.trips * k, depth

    def gemm_tma(self):
        rows, columns, k, depth = self._product()
        a, b = random(self.generator, rows, depth), random(self.generator, columns, depth)
        self.tensors = {"a_desc": a, "b_desc": b, "c_desc": np.full((rows, columns), np.nan, np.float16)}
        self.numbers = {"K": k}
        self.wanted = {"c_desc": a[:, :k].astype(float) @ b[:, :k].astype(float).T}

    def gemm_pointers(self):
        rows, columns, k, depth = self._product()
        a, b = random(self.generator, rows, depth), random(self.generator, depth, columns)
        a, b = a[:, :k] if k else a, b[:k] if k else b
        self.tensors = {"a_ptr": a, "b_ptr": b, "c_ptr": np.full((rows, columns), np.nan, np.float16)}
        self.numbers = {"M": rows, "N": columns, "K": k}
        self.numbers |= {"stride_a": a.shape[1], "stride_b": columns, "stride_c": columns}
        self.wanted = {"c_ptr": a[:, :k].astype(float) @ b[:k].astype(float)}

    def swiglu(self):
        rows, columns, k, depth = self._product()
        x = random(self.generator, rows, depth)
        gate, up = (random(self.generator, columns, depth, scale=0.1) for _ in range(2))
        y = np.full((rows, columns), np.nan, np.float16)
        self.tensors = {"x_desc": x, "gate_desc": gate, "up_desc": up, "y_desc": y}
        self.numbers = {"K": k}
        g, u = (x[:, :k].astype(float) @ w[:, :k].astype(float).T for w in (gate, up))
        self.wanted = {"y_desc": g / (1 + np.exp(-g)) * u}

    def _scores(self, q, k, scale, causal=False):
        scores = q.astype(float) @ k.astype(float).T * scale
        return np.where(np.tril(np.ones_like(scores)) > 0, scores, -np.inf) if causal else scores

    def attention_forward(self):
        c, heads = self.constants, 2
        length, dim = self.trips * max(c["BLOCK_M"], c["BLOCK_N"]), c["HEAD_DIM"]
        self.grid = (length // c["BLOCK_M"], heads)
        q, k, v = (random(self.generator, heads * length, dim, scale=s) for s in (3.0, 1.0, 1.0))
        o, lse = np.full((heads * length, dim), np.nan, np.float16), np.full(heads * length, np.nan, np.float32)
        self.tensors = {"q_desc": q, "k_desc": k, "v_desc": v, "o_desc": o, "lse_ptr": lse}
        self.numbers = {"softmax_scale": dim**-0.5, "length": length}
        wanted = []
        for head in range(heads):
            at = slice(head * length, (head + 1) * length)
            s = self._scores(q[at], k[at], dim**-0.5, c["CAUSAL"])
            sums = np.log2(np.exp2(s * LOG2_E).sum(1))
            wanted.append((np.exp2(s * LOG2_E - sums[:, None]) @ v[at].astype(float), sums))
        outputs, sums = (np.concatenate(parts) for parts in zip(*wanted))
        self.wanted = {"o_desc": outputs, "lse_ptr": sums}

    def attention_backward(self):
        c, heads = self.constants, 1
        length, dim = self.trips * max(c["BLOCK_M"], c["BLOCK_N"]), c["HEAD_DIM"]
        self.grid = (length // c["BLOCK_N"], heads)
        scale = dim**-0.5
        q, k, v, do = (random(self.generator, length, dim) for _ in range(4))
        s = self._scores(q, k, scale)
        lse = np.log2(np.exp2(s * LOG2_E).sum(1))
        p = np.exp2(s * LOG2_E - lse[:, None])
        o, grad = p @ v.astype(float), do.astype(float)
        delta = (o * grad).sum(1)
        ds = p * (grad @ v.astype(float).T - delta[:, None])
        empty = lambda: np.full((length, dim), np.nan, np.float16)
        self.tensors = {"q_desc": q, "k_desc": k, "v_desc": v, "do_desc": do, "dk_desc": empty(), "dv_desc": empty()}
        self.tensors |= {"dq_desc": np.zeros((length, dim), np.float32)}
        self.tensors |= {"lse_ptr": lse.astype(np.float32), "delta_ptr": delta.astype(np.float32)}
        self.numbers = {"softmax_scale": scale, "length": length}
        dq, dk = ds @ k.astype(float), ds.T @ q.astype(float) * scale
        self.wanted = {"dq_desc": dq, "dk_desc": dk, "dv_desc": p.T @ grad}
