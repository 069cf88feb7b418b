"""Products with what examples/fixtures/epilogues.py makes of them, in float64."""

import math

import numpy as np

SLOPE = 1.7
"""The number that some of them take."""
FUNCTIONS = {
    "clamp": lambda x: np.clip(x, -1, SLOPE),
    "erf": lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x * 0.5**0.5)),
    "integers": lambda x: np.clip(np.trunc(x * SLOPE), -128, 127) + np.floor(x) - np.ceil(x),
    "libdevice_pow": lambda x: np.abs(x) ** SLOPE,
    "libdevice_tanh": np.tanh,
    "limits": lambda x: np.clip(x, 0, 6),
    "rsqrt": lambda x: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6),
    "sigmoid": lambda x: x / (1 + np.exp(-x)),
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True),
    "tanh": lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))),
    "unsigned": lambda x: (np.trunc(np.abs(x * SLOPE)).astype(np.int64) >> 1) % 7,
    "where": lambda x: np.where(x > 0, x, x * SLOPE),
}
OTHERS = ["bias_vector", "bias_vector_masked", "residual_pointers", "residual_tile"]


class Epilogue:
    """Tensors and numbers by the names of parameters, and what the result should be. `name` is a function's or a kernel's."""

    def __init__(self, name, kernel, seed=0):
        generator = np.random.default_rng(seed)
        random = lambda *shape, scale=1.0: (generator.standard_normal(shape) * scale).astype(np.float16)
        columns = kernel["constants"].get("BLOCK_N", 128)
        a, b, beyond = random(256, 128), random(columns, 128, scale=0.15), 16
        # Integers are cut off, so that what float32 rounds would decide; products of whole eighths are exact.
        if name in ("integers", "unsigned"):
            a, b = np.round(a * 8) / np.float16(8), np.round(b * 8) / np.float16(8)
        x = a.astype(float) @ b.astype(float).T
        element = next(p["element"] for p in kernel["parameters"] if p["name"] == "bias_ptr") if "bias" in name else ""
        bias = random(columns).astype(np.float16 if element == "fp16" else np.float32)
        residual = random(256, columns)
        self.result = np.full((256, columns), np.nan, np.float16)
        self.tensors = {"a_desc": a, "b_desc": b, "c_desc": self.result, "c_ptr": self.result}
        self.tensors |= {"bias_ptr": bias, "r_desc": residual, "r_ptr": residual}
        self.numbers = {"K": 128, "M": 256 - beyond, "N": columns - beyond, "stride": columns, "slope": SLOPE}
        self.numbers |= {"programs_x": 2, "programs_y": 1, "programs_z": 1}
        if name in FUNCTIONS:
            self.wanted = FUNCTIONS[name](x).astype(float)
        elif "bias" in name:
            self.wanted = x + np.where(np.arange(columns) < columns - beyond * ("masked" in name), bias, 0)
        else:
            self.wanted = x + residual
        if name == "residual_pointers":
            self.wanted[-beyond:], self.wanted[:, -beyond:] = np.nan, np.nan

    def error(self):
        """How far the result is from what is wanted; NaN stands for what nobody writes."""
        left = np.isnan(self.wanted)
        if (np.isnan(self.result) != left).any():
            return math.inf
        difference = np.where(left, 0, self.result.astype(float) - self.wanted)
        return np.linalg.norm(difference) / np.linalg.norm(np.where(left, 0, self.wanted))
