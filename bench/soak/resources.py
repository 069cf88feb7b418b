"""What a process, the GPU and folders hold."""

from __future__ import annotations

import os
from pathlib import Path


def of_process() -> dict[str, float]:
    """Memory of this process in KiB, its open files, threads and children."""
    tasks = os.listdir("/proc/self/task")
    return {
        "rss": int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1024,
        "files": len(os.listdir("/proc/self/fd")),
        "threads": len(tasks),
        "children": len(children(tasks)),
    }


def children(tasks: list[str]) -> set[str]:
    """Processes that threads of this one have started and that have not been waited for."""
    found: set[str] = set()
    for task in tasks:
        try:
            found.update(Path(f"/proc/self/task/{task}/children").read_text().split())
        except OSError:
            # The thread has ended, or the kernel does not tell.
            continue
    return found


def of_folder(folder: Path) -> tuple[int, float]:
    """How many files are below a folder, and their KiB. Others may be at work in it."""
    count, size = 0, 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.lstat(os.path.join(place, name)).st_size
                count += 1
            except OSError:
                continue
    return count, size / 1024


def processes_with(variable: str, value: str) -> list[int]:
    """Processes in whose environment a variable begins with this value."""
    wanted = f"{variable}={value}".encode()
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            try:
                environment = (place / "environ").read_bytes()
                # One that was killed and not waited for has no memory, and no environment.
                if any(one.startswith(wanted) for one in environment.split(b"\0")):
                    found.append(int(place.name))
            except OSError:
                continue
    return found
