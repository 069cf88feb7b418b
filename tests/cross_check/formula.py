"""Boolean formulas with pseudo-Boolean inequalities, written for Z3."""

from __future__ import annotations

from math import gcd

import z3

Literal = int | bool
"""A Boolean by number, its negation by the negative number, or a constant."""


class Formula:
    """Clauses and pseudo-Boolean inequalities. Written as SMT-LIB text, which Z3 reads far faster
    than Python can build terms."""

    def __init__(self) -> None:
        self.count = 0
        self.lines: list[str] = []
        self.contradiction = False

    def new(self) -> int:
        self.count += 1
        self.lines.append(f"(declare-const b{self.count} Bool)")
        return self.count

    def clause(self, *literals: Literal) -> None:
        kept = []
        for literal in literals:
            if literal is True:
                return
            if literal is not False:
                kept.append(text(literal))
        if not kept:
            self.contradiction = True
        elif len(kept) == 1:
            self.lines.append(f"(assert {kept[0]})")
        else:
            self.lines.append(f"(assert (or {' '.join(kept)}))")

    def at_most(self, terms: list[tuple[int, Literal]], bound: int) -> None:
        """`sum of coefficient * literal <= bound`, coefficients not negative."""
        kept: dict[int, int] = {}
        for coefficient, literal in terms:
            if literal is True:
                bound -= coefficient
            elif literal is not False and coefficient:
                kept[literal] = kept.get(literal, 0) + coefficient
        if bound < 0:
            self.contradiction = True
            return
        if sum(kept.values()) <= bound:
            return
        divisor = gcd(*kept.values())
        coefficients = " ".join(str(c // divisor) for c in kept.values())
        literals = " ".join(text(literal) for literal in kept)
        self.lines.append(f"(assert ((_ pble {bound // divisor} {coefficients}) {literals}))")


def text(literal: int) -> str:
    return f"b{literal}" if literal > 0 else f"(not b{-literal})"


def negate(literal: Literal) -> Literal:
    return not literal if isinstance(literal, bool) else -literal


def term(literal: int) -> z3.BoolRef:
    name = z3.Bool(f"b{abs(literal)}")
    return name if literal > 0 else z3.Not(name)
