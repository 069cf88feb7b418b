"""The MMAs of Hopper: `wgmma`, of which a warp does its sixteen of 64 rows, and matrices between registers and shared memory."""

import numpy as np

from .cta import floats, need

LANES = np.arange(32)
KINDS = {"f16": 0, "bf16": 1}


class Result:
    """The result of an MMA: for each register of the warp 32 numbers, which nobody may read before they are waited for."""

    def __init__(self):
        self.numbers, self.is_done = None, False


class Part:
    """A register of a result."""

    __slots__ = ("result", "at")

    def __init__(self, result, at):
        self.result, self.at = result, at

    @property
    def is_done(self):
        return self.result.is_done

    @property
    def numbers(self):
        return self.result.numbers[self.at]


class Together:
    """The MMAs of a warp group, in order: none reads before all four warps have started it."""

    def __init__(self, eager):
        self.eager, self.parts, self.ended, self.started = eager, [], {}, {}

    def start(self, warp, run):
        """The number of the MMA of which this is the warp's part."""
        number = self.started.get(warp, 0)
        self.started[warp] = number + 1
        if number == len(self.parts):
            self.parts.append({})
        self.parts[number][warp] = run
        if self.eager and self.can_end(number):
            for one in self.parts[number]:
                self.end(one, number)
        return number

    def can_end(self, number):
        return len(self.parts[number]) == 4

    def end(self, warp, number):
        """The warp's part of all MMAs up to this one."""
        for one in range(self.ended.get(warp, 0), number + 1):
            self.parts[one][warp]()
            self.ended[warp] = one + 1


class Wgmma:
    """The operations that a warp does in warp groups of four. Where its CTA is not eager, MMAs read when they are waited for."""

    def __init__(self):
        self.open, self.groups = [], []

    @property
    def together(self):
        return self.cta.warp_groups.setdefault(self.number // 4, Together(self.cta.eager))

    def do_wgmma(self, i, o, mask):
        need(mask.all(), "an MMA by a part of a warp")
        kind = i.parts[1]
        if kind == "fence":
            return None
        if kind == "commit_group":
            self.groups.append(self.open)
            self.open = []
            return None
        if kind == "wait_group":
            ended = self.groups[: max(len(self.groups) - int(o[0]), 0)]
            ended = [mma for group in ended for mma in group]
            if not all(self.together.can_end(number) for number, _ in ended):
                self.waiting = i
                return "wait"
            for number, result in ended:
                self.together.end(self.number, number)
                result.is_done = True
            self.groups = self.groups[max(len(self.groups) - int(o[0]), 0) :]
            return None
        need(kind == "mma_async" and i.parts[4].startswith("m64n") and i.parts[4].endswith("k16"), "another MMA")
        need(i.parts[5] == "f32" and i.parts[6] == i.parts[7] and i.parts[6] in KINDS, "other types")
        return self.wgmma(o, int(i.parts[4][4:-3]), KINDS[i.parts[6]])

    def wgmma(self, o, columns, kind):
        names, in_registers = o[0][1:], isinstance(o[1], list)
        need(len(names) == columns // 2 and columns % 8 == 0 and columns <= 256, "the count of registers")
        adds = self.read(o[3], "pred")
        need((adds == adds[0]).all() and o[4] == o[5] == "1", "factors of an MMA")
        # 1: rows of a left operand, or columns of a right one, are side by side.
        sides = [int(side) for side in o[6:]]
        left = self.fragment(o[1][1:], kind) if in_registers else self.descriptor(o[1])
        right = self.descriptor(o[2])
        before = [self.registers.get(name) for name in names] if adds[0] else None
        result, cta, first = Result(), self.cta, self.number % 4 * 16

        def run():
            a = left if in_registers else cta.matrix(left, 64, not sides[0], kind, 0)[first : first + 16]
            product = a @ cta.matrix(right, columns, not sides[-1], kind, 0).T
            register = np.arange(columns // 2)[:, None]
            numbers = product[LANES // 4 + register // 2 % 2 * 8, register // 4 * 8 + LANES % 4 * 2 + register % 2]
            if before:
                numbers = numbers + np.stack([b.numbers if isinstance(b, Part) else b.view(np.float32) for b in before])
            result.numbers = numbers.astype(np.float32)

        self.open.append((self.together.start(self.number, run), result))
        for at, name in enumerate(names):
            self.registers[name] = Part(result, at)

    def descriptor(self, operand):
        """The same in all threads of the warp."""
        value = self.read(operand, "u64")
        need((value == value[0]).all(), "a descriptor that differs between threads")
        return int(value[0])

    def fragment(self, names, kind):
        """Sixteen rows and columns of a left operand, of which each thread has four words."""
        matrix = np.zeros((16, 16), np.float32)
        for k, name in enumerate(names):
            pair = floats(np.ascontiguousarray(self.read(name, "b32")).view(np.uint16), kind).reshape(32, 2)
            for half in range(2):
                matrix[LANES // 4 + k % 2 * 8, LANES % 4 * 2 + k // 2 * 8 + half] = pair[:, half]
        return matrix

    def matrices(self, i, place):
        """Four matrices of 8 x 8: where in shared memory each thread's two neighbours are."""
        need(i.parts[3:] == ["m8n8", "x4", "shared", "b16"], "other matrices")
        rows = self.cta.local(self.address(place, "u32")).reshape(4, 8)
        need((rows % 16 == 0).all(), "an address that is not aligned")
        return rows[:, LANES // 4] + LANES % 4 * 4

    def do_ldmatrix(self, i, o, mask):
        for name, at in zip(o[0][1:], self.matrices(i, o[1])):
            self.write(name, self.cta.shared[at[:, None] + np.arange(4)].copy().view(np.uint32)[:, 0], mask)

    def do_stmatrix(self, i, o, mask):
        for name, at in zip(o[1][1:], self.matrices(i, o[0])):
            self.cta.shared[at[:, None] + np.arange(4)] = self.read(name, "b32").copy().reshape(32, 1).view(np.uint8)
