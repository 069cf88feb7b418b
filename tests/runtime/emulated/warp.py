"""A warp: 32 threads that go through a program together where they can."""

import struct

import numpy as np

from .arithmetic import DTYPES, TYPES, Arithmetic
from .cta import CLUSTER, DYNAMIC, Barrier, Wrong, need
from .wgmma import Part, Wgmma

LANES = np.arange(32)
PARAMETERS = 1 << 40
"""Addresses of parameters: one at every 4096."""
ALL = np.ones(32, bool)
"""The threads that take part where nothing parts them: this very array, so that nobody has to look into it."""
ALL.flags.writeable = False
ELECTED = 7
"""The thread of a warp that is elected: none that a kernel could take for it by chance."""


class Warp(Arithmetic, Wgmma):
    """`step` goes on until the warp waits for others or is done."""

    def __init__(self, number, program, cta, launch):
        super().__init__()
        self.number, self.program, self.cta, self.launch = number, program, cta, launch
        self.registers = {}
        # Where all threads are, as long as they are together; otherwise None, and `at` says it of each.
        self.together_at, self.at = 0, np.zeros(32, int)
        # What operands that are no registers stand for, which stays the same.
        self.constants = {}
        self.is_done, self.yields, self.cluster_phase = False, False, None
        # Bulk stores of each lane: those not yet committed, and the groups that may still read shared memory.
        self.stores = [([], []) for _ in range(32)]
        self.loading, self.storing, self.mma_lanes, self.waiting = [], [], set(), None

    # ------------------------------------------------------------------------------------------------------ registers
    def read(self, operand, kind):
        if isinstance(operand, list):
            return [self.read(o, kind) for o in operand[1:]]
        if operand in self.registers:
            value = self.registers[operand]
            if isinstance(value, Part):
                need(value.is_done, f"{operand} is read before the MMA that writes it is waited for")
                value = value.numbers
            wanted = DTYPES[kind]
            if value.dtype is wanted:
                return value
            if value.dtype.itemsize == wanted.itemsize:
                return value.view(wanted)
            need(value.dtype.itemsize > wanted.itemsize, f"{operand} is too short for {kind}")
            return np.ascontiguousarray(value.view(wanted).reshape(32, -1)[:, 0])
        value = self.constants.get((operand, kind))
        if value is None:
            value = np.full(32, self.constant(operand, kind))
            value.flags.writeable = False
            if operand != "%clock64":
                self.constants[operand, kind] = value
        return value

    def constant(self, text, kind):
        if text.startswith("0f"):
            return np.float32(struct.unpack("<f", struct.pack("<I", int(text.replace("0f", "0x"), 0)))[0])
        special = self.launch.special(text, self)
        if special is not None:
            return special.astype(TYPES[kind]) if isinstance(special, np.ndarray) else TYPES[kind](special)
        if text == self.program.shared:
            return TYPES[kind](DYNAMIC + (self.cta.rank << CLUSTER))
        if text in self.launch.globals:
            return TYPES[kind](self.launch.globals[text])
        names = [name for _, name in self.program.parameters]
        if text in names:
            return TYPES[kind](PARAMETERS + 4096 * names.index(text))
        need(text.lstrip("-").replace("0x", "").isalnum(), f"{text} was never written")
        try:
            bits = np.dtype(TYPES[kind]).itemsize * 8
            return np.uint64(int(text, 0) % (1 << bits)).astype(TYPES[kind])
        except ValueError:
            raise Wrong(f"{text} was never written") from None

    def write(self, name, value, mask):
        if name == "_":
            return
        value = np.asarray(value)
        before = self.registers.get(name)
        if isinstance(before, Part):
            need(before.is_done, f"{name} is written while an MMA writes it")
            before = before.numbers
        if mask is ALL or mask.all() or before is None or before.dtype.itemsize != value.dtype.itemsize:
            self.registers[name] = value.copy()
        else:
            self.registers[name] = np.where(mask, value.view(before.dtype), before)

    def address(self, operand, kind="u64"):
        """The address of `[register]` or `[register+offset]`."""
        base, _, offset = operand[1].partition("+")
        return self.read(base, kind).astype(np.int64) + int(offset or 0)

    def one(self, mask):
        """The only thread that is here."""
        need(mask.sum() == 1, "what one thread should do is done by several")
        return int(np.flatnonzero(mask)[0])

    # ------------------------------------------------------------------------------------------------------ execution
    def step(self):
        """Goes on; whether anything was done."""
        done = 0
        while not self.is_done:
            if self.together_at is not None:
                if self.execute(self.program.code[self.together_at], ALL) == "wait":
                    return done
            else:
                outcome = self.step_apart()
                if outcome == "wait":
                    return done
                if (self.at == self.at[0]).all():
                    self.together_at = int(self.at[0])
            if self.together_at is not None and self.together_at < 0:
                self.is_done = True
            if self.yields:
                self.yields = False
                return done + 1
            done += 1
        return done

    def step_apart(self):
        """An instruction of those threads that are first in the program and need no others; "wait" if they wait."""
        for at in np.unique(self.at[self.at >= 0]):
            mask = self.at == at
            instruction = self.program.code[at]
            if not (instruction.is_together and not (mask | (self.at < 0)).all()):
                return self.execute(instruction, mask)
        raise Wrong(f"threads of warp {self.number} wait for each other")

    def execute(self, instruction, here):
        mask, some = here, True
        if instruction.guard:
            guard = self.read(instruction.guard, "pred")
            mask = here & (~guard if instruction.negated else guard)
            some = mask.any()
            if here is ALL and some and mask.all():
                mask = ALL
        if instruction.do in ("bra", "ret"):
            to = self.program.labels[instruction.operands[0]] if instruction.do == "bra" else -1
            self.go_on(here, mask, some, to)
            return None
        try:
            if some and getattr(self, instruction.do)(instruction, instruction.operands, mask) == "wait":
                return "wait"
        except Wrong as wrong:
            raise Wrong(f"warp {self.number}, {instruction}: {wrong}") from None
        except (AttributeError, KeyError, ValueError, IndexError) as error:
            raise Wrong(f"warp {self.number}, {instruction}: {type(error).__name__} {error}") from error
        self.go_on(here, mask, False, None)
        return None

    def go_on(self, here, mask, some, to):
        """Threads that are here go on to the next instruction; where `some` are in the mask, those go to another."""
        if here is not ALL:
            self.at[here] += 1
            if some:
                self.at[mask] = to
        elif not some:
            self.together_at += 1
        elif mask is ALL:
            self.together_at = to
        else:
            self.at[:] = self.together_at + 1
            self.at[mask] = to
            self.together_at = None

    # --------------------------------------------------------------------------------------------------------- threads
    def do_bar(self, i, o, mask):
        if i.parts[1] == "warp":
            return None
        need(i.parts[1] in ("sync", "arrive"), "another kind of barrier")
        count = int(o[1]) if len(o) > 1 else self.launch.threads
        self.waiting = i
        return "wait" if self.cta.bar(self, int(o[0]), count, i.parts[1] == "sync") else None

    def do_barrier(self, i, o, mask):
        """Syncs all threads of a cluster."""
        barrier, count = self.cta.cluster[0].cluster_barrier, len(self.cta.cluster) * self.launch.threads // 32
        if i.parts[2] == "arrive":
            need(self.cluster_phase is None, "a second arrival")
            self.cluster_phase = barrier.arrive(self, count, True)
            return None
        need(self.cluster_phase is not None, "a wait without an arrival")
        self.cluster_phase, self.waiting = self.cluster_phase and barrier.arrive(self, count, True), i
        if self.cluster_phase:
            return "wait"
        self.cluster_phase = None
        return None

    def do_mapa(self, i, o, mask):
        self.write(o[0], self.read(o[1], "u32") % (1 << CLUSTER) + (self.read(o[2], "u32") << CLUSTER), mask)

    def do_shfl(self, i, o, mask):
        value = self.read(o[1], "u32")
        kind, by = i.parts[2], self.read(o[2], "s32")
        need((self.read(o[4], "u32") == 0xFFFFFFFF).all(), "all threads take part")
        from_lane = {"idx": by, "bfly": LANES ^ by}[kind]
        self.write(o[0].split("|")[0], value[from_lane], mask)

    def do_elect(self, i, o, mask):
        self.write(o[0].split("|")[1], LANES == ELECTED, mask)

    def do_setmaxnreg(self, i, o, mask):
        need(24 <= int(o[0]) <= 256 and int(o[0]) % 8 == 0, "registers")

    def do_fence(self, i, o, mask):
        pass

    def do_prefetch(self, i, o, mask):
        pass

    # ---------------------------------------------------------------------------------------------------------- memory
    def do_ld(self, i, o, mask):
        if i.parts[1] == "param":
            name = o[1][1]
            return self.write(o[0], np.full(32, self.launch.values[name]), mask)
        kind = TYPES[i.parts[-1]]
        names = o[0][1:] if isinstance(o[0], list) else [o[0]]
        size = np.dtype(kind).itemsize
        at = self.address(o[1], "u32" if i.parts[1] == "shared" else "u64")
        need((at[mask] % (size * len(names)) == 0).all(), "an address that is not aligned")
        for k, name in enumerate(names):
            memory, where = self.memory(i.parts[1], at + k * size, mask)
            value = np.ascontiguousarray(memory[where[:, None] + np.arange(size)]).view(kind)[:, 0]
            self.write(name, value.astype(np.uint16) if size == 1 else value, mask)
        # A warp that polls yields to the others.
        self.yields = "relaxed" in i.parts
        return None

    def do_st(self, i, o, mask):
        kind = TYPES[i.parts[-1]]
        texts = o[1][1:] if isinstance(o[1], list) else [o[1]]
        size = np.dtype(kind).itemsize
        at = self.address(o[0], "u32" if i.parts[1] == "shared" else "u64")
        need((at[mask] % (size * len(texts)) == 0).all(), "an address that is not aligned")
        for k, text in enumerate(texts):
            value = self.read(text, i.parts[-1])
            memory, where = self.memory(i.parts[1], at + k * size, mask)
            memory[where[mask][:, None] + np.arange(size)] = value[mask].reshape(-1, 1).view(np.uint8)

    def do_atom(self, i, o, mask):
        if i.name in ("atom.global.add.f32", "red.global.add.f32"):
            memory, where = self.memory("global", self.address(o[1]), mask)
            for lane, addend in zip(np.flatnonzero(mask), self.read(o[2], "f32")[mask]):
                memory[where[lane] : where[lane] + 4].view(np.float32)[0] += addend
            return
        lane = self.one(mask)
        kind = TYPES[i.parts[-1]]
        need(i.parts[2:4] == ["gpu", "global"] and np.dtype(kind).itemsize == 8, "another atomic operation")
        memory, where = self.memory("global", self.address(o[1]), mask)
        cell = memory[where[lane] : where[lane] + 8].view(np.uint64)
        before, operand = cell[0], self.read(o[2], "u64")[lane]
        if i.parts[4] == "add":
            cell[0] = (int(before) + int(operand)) % (1 << 64)
        else:
            need(i.parts[4] == "cas", "another atomic operation")
            cell[0] = self.read(o[3], "u64")[lane] if before == operand else before
        self.write(o[0], np.full(32, before), mask)

    def do_red(self, i, o, mask):
        self.do_atom(i, ["_", *o], mask)

    def memory(self, space, at, mask):
        if space == "shared":
            at = np.where(mask, self.cta.local(np.where(mask, at, self.cta.rank << CLUSTER)), 0)
            need(((at[mask] >= 0) & (at[mask] < len(self.cta.shared) - 16)).all(), "an address beyond shared memory")
            return self.cta.shared, np.where(mask, at, 0)
        memory, start = self.launch.memory_of(at[mask])
        return memory, np.where(mask, at - start, 0)

    # ----------------------------------------------------------------------------------------------------- asynchronous
    def do_mbarrier(self, i, o, mask):
        cta, kind = self.cta, i.parts[1]
        if kind == "try_wait":
            at, parity = self.address(o[1], "u32"), self.read(o[2], "u32")
            value, at = np.zeros(32, bool), cta.local(at[mask])
            phases = {int(one): cta.barrier(int(one)).phase for one in set(at.tolist())}
            value[mask] = [phases[one] for one in at.tolist()] != parity[mask]
            self.write(o[0], value, mask)
            if not value.any():
                self.waiting = i
                return "wait"
            return None
        at = int(self.address(o[0] if kind == "init" else o[1], "u32")[self.one(mask)])
        if "shared::cluster" in i.parts:
            cta, at = cta.of_cluster(at)
        else:
            at = int(cta.local(at))
        if kind == "init":
            need(at % 8 == 0 and at not in cta.barriers, "the place of a barrier")
            cta.barriers[at] = Barrier(int(self.read(o[1], "u32")[self.one(mask)]))
            return None
        need(kind == "arrive", "another operation on a barrier")
        barrier = cta.barrier(at)
        if "expect_tx" in i.parts:
            barrier.bytes += int(self.read(o[2], "u32")[self.one(mask)])
        return barrier.arrive()

    def do_cp(self, i, o, mask):
        name = i.name
        if name.startswith("cp.async.ca"):
            to, start = self.cta.local(self.address(o[0], "u32")), self.address(o[1])
            size, given = int(o[2]), self.read(o[3], "u32")
            for lane in np.flatnonzero(mask):
                self.cta.shared[to[lane] : to[lane] + size] = 0
                if given[lane]:
                    memory, begin = self.launch.memory_of(start[lane : lane + 1])
                    at = start[lane] - begin
                    self.cta.shared[to[lane] : to[lane] + size] = memory[at : at + size]
            return None
        if name.startswith("cp.async.mbarrier.arrive.noinc"):
            for at in self.cta.local(self.address(o[0], "u32")[mask]):
                self.cta.barrier(int(at)).arrive()
            return None
        lane = self.one(mask)
        if "wait_group" in i.parts:
            return self.finish_stores(lane, int(o[0]))
        open_group, groups = self.stores[lane]
        if "commit_group" in i.parts:
            groups.append(open_group[:])
            open_group.clear()
            return self.finish_stores(lane, 0) if self.cta.eager else None
        tensor_at = 1 if i.parts[5] == "shared::cluster" else 0
        tensor = self.launch.tensor(int(self.address(o[tensor_at])[lane]))
        coordinates = [int(c[lane]) for c in self.read(o[tensor_at][2], "s32")]
        if tensor_at == 1:
            to, barrier = (int(self.cta.local(self.address(o[k], "u32")[lane])) for k in (0, 2))
            self.cta.barrier(barrier)
            ctas = None
            if "multicast::cluster" in i.parts:
                those = int(self.read(o[3], "u16")[lane])
                ctas = [cta for k, cta in enumerate(self.cta.cluster) if those >> k & 1]
            return self.cta.load(tensor, to, coordinates, barrier, ctas)
        start, adds = int(self.cta.local(self.address(o[1], "u32")[lane])), "reduce" in i.parts
        return open_group.append(lambda: self.cta.store(tensor, coordinates, start, adds))

    def finish_stores(self, lane, left):
        groups = self.stores[lane][1]
        while len(groups) > left:
            for store in groups.pop(0):
                store()

    def do_tcgen05(self, i, o, mask):
        cta, kind = self.cta, i.parts[1]
        if kind in ("fence::before_thread_sync", "fence::after_thread_sync", "relinquish_alloc_permit"):
            return None
        if kind == "alloc":
            at = int(self.address(o[0], "u32")[0])
            cta.shared[at : at + 4] = np.array([cta.allocate(int(o[1]))], np.uint32).view(np.uint8)
            return None
        if kind == "dealloc":
            return cta.give_back(int(self.read(o[0], "u32")[0]), int(o[1]))
        if kind == "mma":
            lane = self.one(mask)
            self.mma_lanes.add(lane)
            in_tensor = isinstance(o[1], list)
            left = [int(self.address(o[1], "u32")[lane])] if in_tensor else int(self.read(o[1], "u64")[lane])
            right, instruction = int(self.read(o[2], "u64")[lane]), int(self.read(o[3], "u32")[lane])
            adds = bool(self.read(o[4], "pred")[lane])
            return cta.tcgen05_mma(int(self.address(o[0], "u32")[lane]), left, right, instruction, adds)
        if kind == "commit":
            lane = self.one(mask)
            need(self.mma_lanes <= {lane}, "a commit by another thread than started the MMA")
            return cta.commit(cta.barrier(int(self.address(o[0], "u32")[lane])))
        if kind == "wait::ld":
            for name, value in self.loading:
                self.write(name, value, mask)
            self.loading.clear()
            return None
        if kind == "wait::st":
            for store in self.storing:
                store()
            self.storing.clear()
            return None
        need(kind in ("ld", "st") and mask.all(), "another operation on tensor memory")
        return self.move(i, o, mask)

    def move(self, i, o, mask):
        """tcgen05.ld and tcgen05.st; loads are there, and stores done, when they are waited for."""
        is_load, is_half = i.parts[1] == "ld", "16x32bx2" in i.parts
        place, vector = (o[1], o[0]) if is_load else (o[0], o[-1])
        names = vector[1:]
        need(f"x{len(names)}" in i.parts and (is_half or "32x32b" in i.parts), "the count of registers")
        at = self.address(place, "u32")
        need((at == at[0]).all() and at[0] >> 16 == self.number % 4 * 32, "the lanes of another warp")
        lanes = (at[0] >> 16) + (LANES % 16 if is_half else LANES)
        half = int(o[2] if is_load else o[1]) if is_half else 0
        columns = (at[0] & 0xFFFF) + (LANES // 16 * half if is_half else 0 * LANES)
        for lane in (0, 31):
            self.cta.cells(0, int(columns[lane]), len(names))
        for k, name in enumerate(names):
            where = (lanes, columns + k)
            if is_load:
                self.loading.append((name, self.cta.tensor[where].copy()))
                self.write(name, np.full(32, 0x7FC0BAD0, np.uint32), mask)
            else:
                value = self.read(name, "b32").copy()
                self.storing.append(lambda where=where, value=value: self.cta.tensor.__setitem__(where, value))
