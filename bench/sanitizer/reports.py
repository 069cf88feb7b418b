"""What compute-sanitizer says, by kernel."""

import re
from dataclasses import dataclass, field

from .runner import MARK

HEAD = re.compile(r"^========= (?! |COMPUTE-SANITIZER|ERROR SUMMARY|RACECHECK SUMMARY|LEAK SUMMARY)(.*)")
MORE = re.compile(r"^=========  +(.*)")
MOST = 10
"""Reports of a kernel that are kept."""
SELF = re.compile(r"Program hit|Target application|No attachable|Error: process|Internal")
"""What it says of itself, and of calls whose errors the kernel's launcher sees, too."""


@dataclass
class Said:
    """Of one kernel."""

    state: str = "not reached"
    """`ends`, `fails …`, `begins` if the process ended with it."""
    reports: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)


def is_dispatch(report: str, kernel: str) -> bool:
    """Whether a report names only the code by which Triton's warps learn what to do: it stands at the line where the kernel's
    function begins, and behind its groups, which is at most two lines."""
    lines = kernel.splitlines()
    entry = max(number for number, line in enumerate(lines, 1) if line.startswith("def "))
    named = {int(number) for number in re.findall(r"in kernel\.py:(\d+)", report)}
    return bool(named) and named <= {entry, len(lines) - 1, len(lines)}


def read(text: str) -> dict[int, Said]:
    """By the number of the kernel."""
    found: dict[int, Said] = {}
    current: Said | None = None
    for line in text.splitlines():
        if line.startswith(MARK):
            number, _, state = line[len(MARK) :].strip().partition(" ")
            current = found.setdefault(int(number), Said())
            current.state = state
        elif current and (head := HEAD.match(line)) and head[1].strip():
            kept = current.other if SELF.search(head[1]) else current.reports
            if len(kept) < MOST:
                kept.append(head[1])
        elif current and current.reports and (more := MORE.match(line)) and current.reports[-1].count("|") < 3:
            current.reports[-1] += f" | {more[1]}"
    return found
