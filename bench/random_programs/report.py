"""The section of docs/reports/trust.md on random programs (`cargo xtask trust --only page` makes the page of it)."""

from pathlib import Path

from bench.common import write_section

COLUMNS = ("compiled", "refused", "equal", "close", "nothing", "as interpreted", "DIFFERENT", "fails")
HEADS = ("form", "programs", "refused", "calls equal bit for bit", "within tolerance", "nothing to write")
HEADS += ("as interpreted, stock Triton differs", "different", "fault")
TEXT = (
    "Random programs in Triton's language: loops in loops and in branches, early returns, `while`, loads through pointers, "
    "descriptors and block pointers, gathered and page by page, MMAs of 8, 16 and 32 bits, softmax, recurrences, reductions, scans, "
    "atomics, with sizes that end anywhere. A seed is a program with three calls. Stock Triton compiles it, and Twill in several "
    "forms; all run on one GPU, and all memory around their arguments must then be the same, also as an interpreter of the TTIR "
    "computes it where it knows the operations. Numbers are small multiples of a quarter, so that most sums are exact. A program "
    "that differs is reduced to a small one (`--reduce SEED`).",
)


def write(total: dict, path: Path, card: str) -> None:
    """Writes the section; notes stand in the file of the sums."""
    rows = []
    for name, counted in sorted(total["sides"].items()):
        rows.append([name, *(counted.get(column, 0) for column in COLUMNS)])
    seeds = ",".join(f"{first}:{end}" for first, end in total["seeds"])
    tried = f"Tried: {total['programs']} programs, with seeds {spans(seeds)}."
    command = f"python -m bench.random_programs --seeds … --total FILE --section docs/reports/trust/{path.name}"
    text = [*TEXT, tried, *total.get("notes", [])]
    write_section(path, "Random programs on a GPU", 25, command, card, text, HEADS, rows)


def spans(text: str) -> str:
    """Many spans in short."""
    parts = text.split(",")
    return text if len(parts) <= 6 else f"from {parts[0].split(':')[0]} to {parts[-1].split(':')[1]}, with gaps"
