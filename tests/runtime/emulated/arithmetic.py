"""The arithmetic of threads in registers."""

import numpy as np

from .cta import need
from .wgmma import Part

TYPES = {
    "s32": np.int32, "u32": np.uint32, "b32": np.uint32, "f32": np.float32, "s64": np.int64, "u64": np.uint64,
    "b64": np.uint64, "u16": np.uint16, "s16": np.int16, "b16": np.uint16, "f16": np.float16, "pred": np.bool_,
    "u8": np.uint8, "s8": np.int8, "b8": np.uint8,
}  # fmt: skip
DTYPES = {kind: np.dtype(of) for kind, of in TYPES.items()}
COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
ROUNDINGS = {"rni": np.rint, "rmi": np.floor, "rpi": np.ceil, "rzi": np.trunc}


class Arithmetic:
    """Instructions on the registers of a warp, which has `read` and `write`. Nobody is warned of what is no number."""

    def binary(self, operands, kind, mask, function):
        value = function(self.read(operands[1], kind), self.read(operands[2], kind))
        self.write(operands[0], value.astype(DTYPES[kind], copy=False), mask)

    def do_add(self, i, o, mask):
        self.binary(o, i.parts[-1], mask, np.add)

    def do_sub(self, i, o, mask):
        self.binary(o, i.parts[-1], mask, np.subtract)

    def do_mul(self, i, o, mask):
        if "wide" in i.parts or "hi" in i.parts:
            kind = i.parts[-1]
            need(kind in ("s32", "u32"), "numbers of 32 bits")
            a, b = (self.read(x, kind).astype(np.int64 if kind[0] == "s" else np.uint64) for x in o[1:])
            return self.write(o[0], a * b if "wide" in i.parts else (a * b >> a.dtype.type(32)).astype(TYPES[kind]), mask)
        return self.binary(o, i.parts[-1], mask, np.multiply)

    def do_mad(self, i, o, mask):
        a, b, c = (self.read(x, i.parts[-1]) for x in o[1:])
        self.write(o[0], a * b + c, mask)

    def do_fma(self, i, o, mask):
        a, b, c = (self.read(x, "f32").astype(np.float64) for x in o[1:])
        self.write(o[0], (a * b + c).astype(np.float32), mask)

    def do_div(self, i, o, mask):
        if i.parts[-1] == "f32":
            return self.binary(o, "f32", mask, np.divide)
        return self.binary(o, "s32", mask, lambda a, b: np.trunc(a / b))

    def do_rcp(self, i, o, mask):
        self.write(o[0], np.float32(1) / self.read(o[1], "f32"), mask)

    def do_rem(self, i, o, mask):
        self.binary(o, "s32", mask, np.fmod)

    def do_min(self, i, o, mask):
        self.binary(o, i.parts[-1], mask, np.minimum if "NaN" in i.parts else np.fmin)

    def do_max(self, i, o, mask):
        self.binary(o, i.parts[-1], mask, np.maximum if "NaN" in i.parts else np.fmax)

    def do_and(self, i, o, mask):
        self.binary(o, i.parts[-1], mask, np.bitwise_and)

    def do_or(self, i, o, mask):
        self.binary(o, i.parts[-1], mask, np.bitwise_or)

    def do_xor(self, i, o, mask):
        self.binary(o, i.parts[-1], mask, np.bitwise_xor)

    def do_shl(self, i, o, mask):
        kind = i.parts[-1]
        self.write(o[0], self.read(o[1], kind) << self.read(o[2], "u32").astype(TYPES[kind]), mask)

    def do_shr(self, i, o, mask):
        kind = i.parts[-1]
        self.write(o[0], self.read(o[1], kind) >> self.read(o[2], "u32").astype(TYPES[kind]), mask)

    def do_shf(self, i, o, mask):
        low, high, by = (self.read(x, "u32").astype(np.uint64) for x in o[1:])
        both, by = high << np.uint64(32) | low, by % np.uint64(32)
        both = both << by >> np.uint64(32) if "l" in i.parts else both >> by
        self.write(o[0], both.astype(np.uint32), mask)

    def do_neg(self, i, o, mask):
        self.write(o[0], -self.read(o[1], i.parts[-1]), mask)

    def do_bfi(self, i, o, mask):
        what, into, at, count = (self.read(x, "u32") for x in o[1:])
        field = ((np.uint32(1) << count) - np.uint32(1)) << at
        self.write(o[0], (into & ~field) | (what << at & field), mask)

    def do_not(self, i, o, mask):
        self.write(o[0], ~self.read(o[1], i.parts[-1]), mask)

    def do_abs(self, i, o, mask):
        self.write(o[0], np.abs(self.read(o[1], i.parts[-1])), mask)

    def do_copysign(self, i, o, mask):
        # The sign of the first.
        self.write(o[0], np.copysign(self.read(o[2], "f32"), self.read(o[1], "f32")), mask)

    def do_ex2(self, i, o, mask):
        self.write(o[0], np.exp2(self.read(o[1], "f32")), mask)

    def do_lg2(self, i, o, mask):
        self.write(o[0], np.log2(self.read(o[1], "f32")), mask)

    def do_rsqrt(self, i, o, mask):
        self.write(o[0], 1 / np.sqrt(self.read(o[1], "f32")), mask)

    def do_setp(self, i, o, mask):
        kind = i.parts[-1]
        a, b = self.read(o[1], kind), self.read(o[2], kind)
        name = i.parts[1]
        unordered = len(name) == 3 and name.endswith("u") and kind.startswith("f")
        value = COMPARE[name[:2]](a, b)
        if unordered:
            value |= np.isnan(a) | np.isnan(b)
        self.write(o[0], value, mask)

    def do_selp(self, i, o, mask):
        kind = i.parts[-1]
        self.write(o[0], np.where(self.read(o[3], "pred"), self.read(o[1], kind), self.read(o[2], kind)), mask)

    def do_mov(self, i, o, mask):
        kind = i.parts[-1]
        if isinstance(o[1], str) and isinstance(self.registers.get(o[1]), Part) and mask.all():
            # Another name for the same register: nothing is read.
            self.registers[o[0]] = self.registers[o[1]]
            return None
        if isinstance(o[1], list):
            half = {"b32": "u16", "b64": "u32"}[kind]
            value = np.stack(self.read(o[1], half), 1).view(TYPES[kind])[:, 0]
            return self.write(o[0], value, mask)
        if isinstance(o[0], list):
            parts = self.read(o[1], kind).reshape(32, 1).view(TYPES[{"b32": "u16", "b64": "u32"}[kind]])
            for k, name in enumerate(o[0][1:]):
                self.write(name, np.ascontiguousarray(parts[:, k]), mask)
            return None
        return self.write(o[0], self.read(o[1], kind), mask)

    def do_cvt(self, i, o, mask):
        to, have = i.parts[-2:]
        if to == "f16x2":
            high, low = (self.read(x, "f32").astype(np.float16) for x in o[1:])
            return self.write(o[0], np.stack([low, high], 1).view(np.uint32)[:, 0], mask)
        if to == "bf16x2":
            # To the nearest of the upper halves, ties to even.
            high, low = (self.read(x, "f32").copy().view(np.uint32).astype(np.uint64) for x in o[1:])
            isnan = lambda bits: bits & np.uint64(0x7FFFFFFF) > np.uint64(0x7F800000)
            even = lambda bits: bits + np.uint64(0x7FFF) + (bits >> np.uint64(16) & np.uint64(1))
            high, low = (np.where(isnan(bits), np.uint64(0x7FFFFFFF), even(bits)) for bits in (high, low))
            word = high >> np.uint64(16) << np.uint64(16) | low >> np.uint64(16)
            return self.write(o[0], word.astype(np.uint32), mask)
        value = self.read(o[1], have)
        for rounding in ROUNDINGS.keys() & set(i.parts):
            value = ROUNDINGS[rounding](value)
        return self.write(o[0], value.astype(TYPES[to]), mask)

    def do_cvta(self, i, o, mask):
        self.write(o[0], self.read(o[1], "u64"), mask)
