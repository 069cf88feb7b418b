"""Wrong kernels on purpose: a TTIR with one thing changed, for `python -m bench.applications --plant`.

Nothing is changed on which an address, a mask or the flow of control depends, as far as the TTIR says: a planted kernel reads
and writes where the right one does, or less, and comes to an end.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

NAME = r"%[\w.$-]+"
USE = re.compile(rf"{NAME}(?:#\d+)?")
RESULTS = re.compile(rf"\s*({NAME}(?::\d+)?(?:, {NAME}(?::\d+)?)*) = (.*)")
LOCATION = re.compile(r"\s+loc\(.*")
FOR = re.compile(rf"scf\.for ({NAME}) = (\S+) to (\S+) step (\S+?)(?: iter_args\((.*?)\))?(?: -> .*?)? +:? *(\w*) \{{$")
OPERATION = re.compile(r'"?([a-z_]+\.[\w.]+)"?')
HEAD, PLANTED = "tt.func public", "%planted"

EXCHANGED = {
    "arith.addf": "arith.subf",
    "arith.subf": "arith.addf",
    "arith.mulf": "arith.addf",
    "arith.divf": "arith.mulf",
    "arith.maxnumf": "arith.minnumf",
    "arith.minnumf": "arith.maxnumf",
    "arith.maximumf": "arith.minimumf",
    "arith.minimumf": "arith.maximumf",
    "arith.addi": "arith.subi",
    "math.exp": "math.exp2",
    "math.exp2": "math.exp",
    "math.log": "math.log2",
    "math.log2": "math.log",
    "math.sqrt": "math.rsqrt",
    "math.rsqrt": "math.sqrt",
}
"""What takes the place of an operation."""
COMBINED = {"arith.addf": "arith.maxnumf", "arith.maxnumf": "arith.minnumf", "arith.minnumf": "arith.maxnumf"}
"""The same where elements are combined in any order."""
PREDICATES = {"slt": "sle", "sle": "slt", "sgt": "sge", "sge": "sgt", "ult": "ule", "ule": "ult", "eq": "ne", "ne": "eq"}
PREDICATES |= {"ogt": "olt", "olt": "ogt", "oge": "ole", "ole": "oge"}
"""What takes the place of a comparison's."""
WAITS = ("tt.atomic_cas", "scf.while")
"""With these a program may wait for what another one writes, which has to write it then."""


class Planted(NamedTuple):
    """A TTIR with one change."""

    kind: str
    line: int
    before: str
    after: str
    text: str

    @property
    def said(self) -> str:
        """The change in one line."""
        return f"{self.kind}, line {self.line}: `{self.before}`" + (f" → `{self.after}`" if self.after else "")


class _Change(NamedTuple):
    kind: str
    place: int
    """Of the line, from 0."""
    line: str
    """What takes its place; nothing where it is left out."""
    constant: str = ""
    """A line at the beginning of the function."""


def plant(ttir: str, seed: int) -> Planted | None:
    """The change of a seed: those of each seed from 0 on differ, in kind first. None where there are no more."""
    changes = all_of(ttir)
    return changes[seed] if seed < len(changes) else None


def all_of(ttir: str) -> list[Planted]:
    """All changes: one of each kind, then another one of each, and so on, in an order that the TTIR says."""
    lines = ttir.splitlines()
    if not any(HEAD in line for line in lines):
        # As MLIR prints operations that it does not know.
        return []
    kinds: dict[str, list[_Change]] = defaultdict(list)
    for change in _Function(lines).changes():
        kinds[change.kind].append(change)
    chance = random.Random(hashlib.sha256(LOCATION.sub("", ttir).encode()).hexdigest())
    each = [kinds[kind] for kind in sorted(kinds)]
    for one in [each, *each]:
        chance.shuffle(one)
    return [_planted(lines, change) for turn in itertools.zip_longest(*each) for change in turn if change is not None]


def _planted(lines: list[str], change: _Change) -> Planted:
    before, location = _split(lines[change.place])
    after = [change.line + location] if change.line else []
    function = next(place for place, line in enumerate(lines) if HEAD in line) + 1
    constant = [f"    {change.constant}"] if change.constant else []
    text = [*lines[:function], *constant, *lines[function : change.place], *after, *lines[change.place + 1 :]]
    # Lines that were added have no number of their own.
    said = change.line.strip().splitlines() or [""]
    return Planted(change.kind, change.place + 1, before.strip(), "; ".join(map(str.strip, said)), "\n".join(text) + "\n")


def _split(line: str) -> tuple[str, str]:
    """A line, and its location."""
    found = LOCATION.search(line)
    return (line[: found.start()], line[found.start() :]) if found else (line, "")


class _Region(NamedTuple):
    operation: str
    place: int
    results: list[str]
    carried: list[str]
    starts: dict[str, str]


class _Function:
    """The kernel of a TTIR: what depends on what, and where something may be changed."""

    def __init__(self, lines: list[str]):
        begin = next(place for place, line in enumerate(lines) if HEAD in line) + 1
        end = next((place for place in range(begin, len(lines)) if lines[place].startswith("  }")), len(lines))
        self._lines = [_split(line)[0] for line in lines]
        self._places = range(begin, end)
        self._depends: dict[str, set[str]] = defaultdict(set)
        self._roots: set[str] = set()
        self._loops: dict[int, list[str]] = {}
        """Of each loop with an MMA: its results."""
        self._starts: dict[int, dict[str, str]] = {}
        """Of lines in loops: what counters and carried values begin with."""
        self._combine: dict[int, int] = {}
        """Of lines that combine elements: the line of the region."""
        self._read()
        self._held = self._reached(self._roots)

    def changes(self) -> Iterator[_Change]:
        """All that may be changed from the main loop on."""
        main = min(self._loops, default=self._places.start)
        computed = [
            place for place in self._places if place >= main and self._operation(place).startswith(("arith.", "math.", "tt.dot"))
        ]
        # What a sum begins with is often multiplied by nothing, and masks often leave nothing out.
        computed_from = {use for place in computed for use in USE.findall(self._lines[place])}
        waits = any(one in self._lines[place] for place in self._places for one in WAITS)
        stores = [place for place in self._places if self._operation(place) in ("tt.store", "tt.descriptor_store")]
        if len(stores) > 1 and not waits:
            yield from (_Change("a store is left out", place, "") for place in stores)
        for place in stores:
            yield from self._twice(place)
        for place in self._places:
            results, right = _results(self._lines[place])
            if any(result in self._held for result in results):
                continue
            operation = self._operation(place)
            if place >= main and place in self._loops and operation == "scf.for" and not waits:
                yield from self._one_trip_less(place)
            elif place in self._combine:
                yield from self._combined(place, operation)
            elif results and operation == "arith.constant" and results[0] in computed_from:
                yield from self._another_constant(place, right)
            elif results and place >= main:
                yield from self._another_operation(place, operation, right)
                yield from self._earlier_load(place, operation, right)

    # --------------------------------------------------------------------------------------------- what is changed
    def _another_operation(self, place: int, operation: str, right: str) -> Iterator[_Change]:
        line = self._lines[place]
        head, types = (line.rsplit(" : ", 1) + [""])[:2]
        operands = USE.findall(right.rsplit(" : ", 1)[0])
        if operation in EXCHANGED:
            yield _Change("another operation", place, line.replace(operation, EXCHANGED[operation], 1))
        if operation == "arith.mulf" and len(set(operands)) == 2:
            yield _Change("another operand", place, f"{_replaced(head, operands[1], operands[0])} : {types}")
        if operation == "arith.select":
            _, one, other = operands
            if one != other:
                yield _Change("a selection the other way round", place, f"{_exchanged(head, one, other)} : {types}")
        predicate = re.search(r"arith\.cmp[if] (\w+),", line)
        if predicate and predicate[1] in PREDICATES:
            other = PREDICATES[predicate[1]]
            yield _Change("another comparison", place, line.replace(f" {predicate[1]},", f" {other},", 1))
        if operation == "tt.dot":
            yield from self._another_dot(place, operands, types)

    def _another_dot(self, place: int, operands: list[str], types: str) -> Iterator[_Change]:
        line = self._lines[place]
        left, right, result = re.split(r" \* | -> ", types)
        if left == right and operands[0] != operands[1]:
            yield _Change("operands of an MMA exchanged", place, _exchanged(line, *operands[:2]))
        zero = "0.000000e+00" if re.search(r"x(f|bf)\d+>$", result) else "0"
        if not any(f"{operands[2]} = arith.constant dense<{zero}>" in line for line in self._lines):
            constant = f"{PLANTED} = arith.constant dense<{zero}> : {result}"
            yield _Change("an accumulator that is zero", place, _replaced(line, operands[2], PLANTED), constant)

    def _another_constant(self, place: int, right: str) -> Iterator[_Change]:
        found = re.fullmatch(r"arith\.constant (dense<)?([-+.\w]+)>? : (?:tensor<[\dx]*x)?(?:f16|bf16|f32|f64)>?", right)
        if found:
            # Infinities are bits.
            value = 0.0 if found[2].startswith("0x") else 1.5 * float(found[2]) or 1.0
            line = self._lines[place].replace(found[2], f"{value:e}", 1)
            yield _Change("another constant", place, line)

    def _earlier_load(self, place: int, operation: str, right: str) -> Iterator[_Change]:
        uses, starts = USE.findall(right), self._starts.get(place, {})
        # A mask is for its own addresses.
        moving = uses[1:] if operation == "tt.descriptor_load" else uses if operation == "tt.load" and len(uses) == 1 else []
        for name in [one for one in moving if one in starts][:1]:
            yield _Change("what the first trip loads", place, _replaced(self._lines[place], name, starts[name]))

    def _twice(self, place: int) -> Iterator[_Change]:
        line = self._lines[place]
        uses, types = USE.findall(line), line.rsplit(" : ", 1)[1]
        value = uses[1] if self._operation(place) == "tt.store" else uses[-1]
        kind = re.sub(r"!tt\.ptr<(\w+)(, \d+)?>", r"\1", types).rpartition(", ")[2]
        if re.search(r"(^|x)(f16|bf16|f32)>?$", kind):
            twice = f"{PLANTED} = arith.addf {value}, {value} : {kind}"
            yield _Change("a result twice as large", place, _before(twice, _replaced(line, value, PLANTED)))

    def _combined(self, place: int, operation: str) -> Iterator[_Change]:
        region = self._combine[place]
        others = sum(one == region for one in self._combine.values())
        if operation in COMBINED and others == 1 and self._operation(region) in ("tt.reduce", "tt.scan"):
            yield _Change("elements combined in another way", place, self._lines[place].replace(operation, COMBINED[operation], 1))

    def _one_trip_less(self, place: int) -> Iterator[_Change]:
        line = self._lines[place]
        found = FOR.search(line)
        if found and found[6]:
            end = f"{PLANTED} = arith.subi {found[3]}, {found[4]} : {found[6]}"
            yield _Change(
                "a trip of a loop less", place, _before(end, line.replace(f" to {found[3]} step", f" to {PLANTED} step", 1))
            )

    # --------------------------------------------------------------------------------------------- what depends on what
    def _operation(self, place: int) -> str:
        found = OPERATION.match(_results(self._lines[place])[1])
        return found[1] if found else ""

    def _reached(self, roots: set[str]) -> set[str]:
        """All that these depend on, and they themselves."""
        found, left = set(roots), list(roots)
        while left:
            new = self._depends[left.pop()] - found
            found |= new
            left += new
        return found

    def _read(self) -> None:
        """Goes through the lines: what each value depends on, and where addresses and the flow of control come from."""
        regions: list[_Region] = []
        for place in self._places:
            line = self._lines[place].strip()
            if line.startswith("}") and regions:
                if line.endswith("{"):
                    # Another region of the same operation.
                    continue
                regions.pop()
                continue
            results, right = _results(line)
            operation, uses = self._operation(place), USE.findall(right)
            if not FOR.search(right):
                # Names are those of several values where they are in regions beside each other: none is forgotten.
                for result in results:
                    self._depends[result].update(uses)
            self._roots.update(_addresses_and_control(operation, right, uses))
            if regions:
                self._starts[place] = {name: start for region in regions for name, start in region.starts.items()}
                self._inside(regions, place, operation, line, uses)
            if line.endswith("{"):
                regions.append(self._opened(place, operation, results, right, uses))

    def _opened(self, place: int, operation: str, results: list[str], right: str, uses: list[str]) -> _Region:
        found = FOR.search(right)
        if not found:
            # What an operation with another region carries, all of it takes part in; a loop of another form is left alone.
            if operation == "scf.for":
                self._roots.update(uses)
            return _Region(operation.replace("scf.for", "scf.while"), place, results, uses, {})
        counter, *bounds = found[1], found[2], found[3], found[4]
        self._depends[counter].update(bounds)
        self._roots.update(bounds)
        pairs = dict(re.findall(rf"({NAME}) = ({NAME}(?:#\d+)?)", found[5] or ""))
        for (name, start), result in zip(pairs.items(), results):
            self._depends[name].add(start)
            self._depends[result].add(start)
        return _Region(operation, place, results, list(pairs), {counter: bounds[0], **pairs})

    def _inside(self, regions: list[_Region], place: int, operation: str, line: str, uses: list[str]) -> None:
        region = regions[-1]
        if operation.startswith("tt.dot"):
            for loop in [one for one in regions if one.operation in ("scf.for", "scf.while")]:
                self._loops[loop.place] = loop.results
        if operation == "scf.yield" and region.operation in ("scf.for", "scf.if"):
            carried = region.carried if region.operation == "scf.for" else [""] * len(region.results)
            for use, name, result in zip(uses, carried, region.results):
                self._depends[name].add(use)
                self._depends[result].add(use)
        elif operation == "scf.yield":
            self._roots.update(uses)
        elif region.operation.startswith("tt."):
            if line.startswith("^"):
                for name in uses:
                    self._depends[name].update(region.carried)
            elif operation.endswith(".return"):
                for result in region.results:
                    self._depends[result].update(uses)
            else:
                self._combine[place] = region.place


def _results(line: str) -> tuple[list[str], str]:
    """Names of a line's results, and what makes them."""
    found = RESULTS.match(line)
    if not found:
        return [], line.strip()
    names = []
    for one in found[1].split(", "):
        name, _, count = one.partition(":")
        names += [f"{name}#{number}" for number in range(int(count))] if count else [name]
    return names, found[2]


def _addresses_and_control(operation: str, right: str, uses: list[str]) -> list[str]:
    """Which of an operation's operands are an address, a mask or a condition, or whatever else is to stay."""
    if operation == "tt.load":
        return uses[:2]
    if operation in ("tt.store", "tt.atomic_rmw"):
        return [uses[0], *uses[2:]]
    if operation in ("tt.descriptor_store", "tt.descriptor_reduce", "tt.descriptor_scatter"):
        return uses[:-1]
    if operation == "scf.if":
        return uses
    kept = ("tt.descriptor_", "tt.make_tensor", "tt.atomic_cas", "tt.assert", "tt.call", "tt.gather", "tt.histogram", "tt.advance")
    return uses if operation.startswith((*kept, "scf.while", "scf.condition", "cf.", "llvm.")) else []


def _before(first: str, line: str) -> str:
    """Two lines, the first as far from the margin as the second."""
    return " " * (len(line) - len(line.lstrip())) + f"{first}\n{line}"


def _replaced(line: str, name: str, other: str) -> str:
    """A line whose last use of a name is another one."""
    *_, last = (found for found in USE.finditer(line) if found[0] == name)
    return line[: last.start()] + other + line[last.end() :]


def _exchanged(line: str, one: str, other: str) -> str:
    """A line with two operands exchanged."""
    taken = {one: other, other: one}
    head, right = line.split(" = ", 1)
    return head + " = " + USE.sub(lambda found: taken.get(found[0], found[0]), right)
