"""State that the warps of a CTA share, and the units that work next to them: barriers, TMA, the tensor core."""

import random
from dataclasses import dataclass
from functools import cache

import numpy as np

SHARED = 1 << 18
"""Bytes of shared memory that can be addressed."""
CLUSTER = 24
"""From which bit on addresses say whose shared memory they are in."""
DYNAMIC = 2048
"""Where a kernel's own begins, at a multiple of what its tiles need."""


class Wrong(Exception):
    """The kernel did what the PTX ISA does not allow, or waits for ever."""


def need(condition, what):
    if not condition:
        raise Wrong(what)


@dataclass
class Tensor:
    """A tensor map: the array, the extents of a box, and bytes of a swizzled line."""

    array: np.ndarray
    box: tuple
    swizzle: int


class Barrier:
    """An mbarrier."""

    def __init__(self, count):
        self.count, self.pending, self.bytes, self.phase = count, count, 0, 0

    def arrive(self, count=1):
        self.pending -= count
        need(self.pending >= 0, "more arrivals at a barrier than it expects")
        self.settle()

    def settle(self):
        if self.pending == 0 and self.bytes == 0:
            self.pending, self.phase = self.count, self.phase ^ 1


class NamedBarrier:
    """A barrier of warps: each arrives once in a phase, and goes on or waits until all have arrived."""

    def __init__(self):
        self.here, self.phase, self.waiting, self.count = set(), 0, {}, None

    def arrive(self, warp, count, waits):
        """This warp, one of `count`, arrives or tries again; true if it waits."""
        need(self.count in (None, count), "another count of threads than the others have")
        self.count = count
        if warp not in self.waiting:
            need(warp not in self.here, "a warp arrives again before the others have arrived")
            self.here.add(warp)
            if waits:
                self.waiting[warp] = self.phase
            if len(self.here) == count:
                self.here, self.phase, self.count = set(), self.phase + 1, None
        if not waits:
            return False
        if self.waiting[warp] == self.phase:
            return True
        del self.waiting[warp]
        return False


class Cta:
    """Memory, barriers and units. Where not `eager`, units do what they are asked at the last moment, in an order that
    `seed` decides: what nobody waits for is seen to be missing."""

    def __init__(self, eager, seed, number=0, cluster=()):
        # The CTAs of its cluster in order, with itself; none where there is no cluster.
        self.number, self.cluster, self.rank, self.has_ended = number, cluster, 0, False
        self.named_barriers, self.cluster_barrier, self.warp_groups = {}, NamedBarrier(), {}
        self.shared = np.full(SHARED, 0xFF, np.uint8)
        # Not a number, wherever nobody has written.
        self.tensor = np.full((128, 512), 0x7FC0DEAD, np.uint32)
        self.columns, self.begin = 0, 0
        self.barriers, self.eager, self.random = {}, eager, random.Random(seed)
        self.queues = {"loads": [], "tensor core": []}

    def ask(self, unit, work):
        if self.eager:
            work()
        else:
            self.queues[unit].append(work)

    def work(self):
        """A unit does the next thing; whether there was one. Loads may overtake each other."""
        waiting = [unit for unit, queue in self.queues.items() if queue]
        if not waiting:
            return False
        unit = self.random.choice(waiting)
        queue = self.queues[unit]
        queue.pop(self.random.randrange(len(queue)) if unit == "loads" else 0)()
        return True

    def barrier(self, at):
        need(at in self.barriers, f"no barrier at {at}")
        return self.barriers[at]

    def bar(self, warp, barrier, count, waits):
        """Returns whether a warp waits at a named barrier."""
        return self.named_barriers.setdefault(barrier, NamedBarrier()).arrive(warp, count // 32, waits)

    def local(self, at):
        """Addresses in this CTA's shared memory, without the upper bits by which those of a cluster differ."""
        need((np.asarray(at) >> CLUSTER == self.rank).all(), "an address in another CTA's shared memory")
        return at & (1 << CLUSTER) - 1

    def of_cluster(self, at):
        """The CTA that an address belongs to, and the address there."""
        cta = self.cluster[at >> CLUSTER] if self.cluster else self
        need(not cta.has_ended, "a CTA that has ended")
        return cta, at & (1 << CLUSTER) - 1

    # ----------------------------------------------------------------------------------------------- tensor memory
    def allocate(self, columns):
        need(columns in (32, 64, 128, 256, 512) and not self.columns, f"{columns} columns of tensor memory")
        self.columns, self.begin = columns, 0 if columns == 512 else 32
        return self.begin

    def give_back(self, begin, columns):
        need((begin, columns) == (self.begin, self.columns), "other columns are given back than were taken")
        need(not any(self.queues.values()), "tensor memory is given back while units work")
        self.columns = 0

    def cells(self, lane, column, count):
        """N columns of lanes, from one on."""
        need(self.begin <= column and column + count <= self.begin + self.columns, f"columns {column}, {count} more")
        return lane, slice(column, column + count)

    # ---------------------------------------------------------------------------------------------------------- TMA
    def _box(self, tensor, start, coordinates):
        """Elements of a box: their addresses in shared memory, which of them exist, and their indices."""
        size = tensor.array.itemsize
        grids = np.meshgrid(*(np.arange(n) for n in tensor.box), indexing="ij")
        index = np.stack(grids, -1).reshape(-1, len(tensor.box))
        line = tensor.box[-1] * size
        rows = np.ravel_multi_index(tuple(index[:, :-1].T), tensor.box[:-1]) if len(tensor.box) > 1 else 0 * index[:, 0]
        at = rows * line + index[:, -1] * size
        if tensor.swizzle:
            need(line == tensor.swizzle and start % (8 * line) == 0, f"a swizzled box at {start}")
            # Chunks of 16 bytes change places within a line of 128 bytes, by which of eight it is.
            at = at ^ (at // 128 % (tensor.swizzle // 16) * 16)
        need(start % 128 == 0, f"a box at {start}")
        where = index + np.array(coordinates[::-1])
        exists = ((where >= 0) & (where < np.array(tensor.array.shape))).all(1)
        return start + at, exists, tuple(where[exists].T)

    def load(self, tensor, to, coordinates, barrier, ctas=None):
        """A box to the same place of all these CTAs, at whose own barriers it arrives."""

        def copy():
            for cta in [self] if ctas is None else ctas:
                need(not cta.has_ended, "a copy to a CTA that has ended")
                cta.arrives(tensor, to, coordinates, cta.barrier(barrier))

        self.ask("loads", copy)

    def arrives(self, tensor, to, coordinates, barrier):
        """A box comes to this CTA's shared memory."""
        at, exists, where = self._box(tensor, to, coordinates)
        elements = np.zeros(len(at), tensor.array.dtype)
        elements[exists] = tensor.array[where]
        size = tensor.array.itemsize
        self.shared[at[:, None] + np.arange(size)] = elements.view(np.uint8).reshape(-1, size)
        barrier.bytes -= len(at) * size
        barrier.settle()

    def store(self, tensor, coordinates, start, adds):
        at, exists, where = self._box(tensor, start, coordinates)
        size = tensor.array.itemsize
        elements = self.shared[at[:, None] + np.arange(size)].copy().view(tensor.array.dtype).ravel()[exists]
        tensor.array[where] = tensor.array[where] + elements if adds else elements

    # -------------------------------------------------------------------------------------------------- the tensor core
    def matrix(self, descriptor, extent, along_depth, kind, constant=1):
        """A matrix of N rows or columns and a depth of 16 ("Shared memory descriptor", "Canonical layouts"). The
        constant of bits 46 to 48 is 1 for tcgen05 and 0 for wgmma."""
        field = lambda low, count: descriptor >> low & (1 << count) - 1
        need(field(46, 3) == constant, "a descriptor without the constant of bits 46 to 48")
        need(field(49, 12) == 0 and field(14, 2) == 0 and field(30, 2) == 0, "a descriptor with other fields")
        start, leading, stride = (field(low, 14) << 4 for low in (0, 16, 32))
        need(field(61, 3) in (2, 4, 6), "a descriptor that is not swizzled")
        line = {2: 128, 4: 64, 6: 32}[field(61, 3)]
        at = start + places(extent, along_depth, leading, stride, line)
        at = at ^ (at // 128 % (line // 16) * 16)
        return floats(self.shared.view(np.uint16)[at >> 1], kind)

    def tcgen05_mma(self, to, left, right, instruction, adds):
        """One tcgen05.mma.kind::f16; `left` is a descriptor, or a list with an address in tensor memory."""
        field = lambda low, count: instruction >> low & (1 << count) - 1
        need(field(4, 2) == 1 and field(0, 4) == 0 and field(13, 2) == 0 and field(29, 3) == 0, "results of 32 bits")
        rows, columns = field(24, 5) << 4, field(17, 6) << 3
        need(rows in (64, 128) and columns <= 256 and columns % (8 if rows == 64 else 16) == 0, f"{rows} x {columns}")
        kinds = [field(low, 3) for low in (7, 10)]
        need(kinds[0] == kinds[1] and kinds[0] in (0, 1), "two operands of 16 bits")
        # Layouts D and F of "Data Path Layout Organization".
        lanes = np.arange(128) if rows == 128 else np.arange(64) // 16 * 32 + np.arange(64) % 16

        def start():
            if isinstance(left, list):
                need(not field(15, 1) and left[0] >> 16 == 0, "a transposed operand in tensor memory")
                words = self.tensor[self.cells(lanes, left[0] & 0xFFFF, 8)]
                a = floats(np.ascontiguousarray(words).view(np.uint16), kinds[0])
            else:
                a = self.matrix(left, rows, not field(15, 1), kinds[0])
            b = self.matrix(right, columns, not field(16, 1), kinds[0])
            need(to >> 16 == 0, "a result that does not begin with lane 0")
            place = self.cells(lanes, to & 0xFFFF, columns)
            product = a @ b.T
            if adds:
                product = product + self.tensor[place].copy().view(np.float32)
            self.tensor[place] = product.astype(np.float32).view(np.uint32)

        self.ask("tensor core", start)

    def commit(self, barrier):
        self.ask("tensor core", barrier.arrive)


@cache
def places(extent, along_depth, leading, stride, line):
    """Where the elements of a matrix are from its start on, before they are swizzled."""
    across, k = np.meshgrid(np.arange(extent), np.arange(16), indexing="ij")
    if along_depth:
        return across // 8 * stride + across % 8 * line + k * 2
    each = line // 2
    return across // each * leading + across % each * 2 + k // 8 * stride + k % 8 * line


def floats(bits, kind):
    """Numbers of 16 bits; kind: 0 for f16, 1 for bf16."""
    if kind == 0:
        return bits.view(np.float16).astype(np.float32)
    return (bits.astype(np.uint32) << 16).view(np.float32)
