"""From a clean machine with only the wheel to the picture of a kernel of one's own, recorded: `cargo xtask minute`.

A shell without anything, in an empty folder with a wheel and a kernel, gets the commands of the README's section, and no
others. Their times and the recording go to docs/minute.md. It fails where a command fails, or all take more than a minute.
"""

import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from terminal import Terminal, Typed

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGE, CAST, PICTURE = DOCS / "minute.md", DOCS / "recordings" / "minute.cast", DOCS / "pictures" / "minute.svg"
KERNEL = Path(__file__).with_name("kernel.py")
HEADING = "A kernel of your own, in a minute"

LIMIT = 60.0
"""Seconds for all commands together."""

NETWORK = ("PIP_", "SSL_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""What a machine may say of its network."""


def commands() -> list[str]:
    """What the README's section says to type, without its comments."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").split(f"\n## {HEADING}\n", 1)[1].split("\n## ", 1)[0]
    block = re.search(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert block, "the section has no commands"
    return [re.sub(r"\s+#.*", "", line) for line in block[1].splitlines() if line.strip()]


def clean(home: Path) -> dict[str, str]:
    """The environment of a new user: programs of the system, an empty home, no cache."""
    kept = {name: value for name, value in os.environ.items() if name.upper().startswith(NETWORK)}
    quiet = {"PIP_QUIET": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_CACHE_DIR": "1"}
    return kept | quiet | {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8"}


def type_all(terminal: Terminal, lines: list[str], limit: float = LIMIT) -> None:
    """Types commands until one fails, or their time is up."""
    left = limit
    for line in lines:
        done = terminal.type(line, left)
        left -= done.seconds
        if done.code == 124 and left <= 0:
            sys.exit(f"{line}: not done when {limit:.0f} s were over\n{done.output}")
        if done.code:
            sys.exit(f"{line}: exit code {done.code}\n{done.output}")


def page(typed: list[Typed], date: str) -> str:
    """The recording in words."""
    total = sum(one.seconds for one in typed)
    picture = next(number for number, one in enumerate(typed) if one.command.endswith(".svg"))
    seen = sum(one.seconds for one in typed[: picture + 1])
    installed = next(one for one in typed if one.command.startswith("pip "))
    rows = "\n".join(f"| {one.seconds:.1f} | `{one.command}` |" for one in typed)
    return f"""\
# A kernel of your own, in a minute

<!-- Written by `cargo xtask minute`. -->

This page has the time that a newcomer waits: from a clean machine with nothing but the wheel to the
picture of a kernel of their own. `cargo xtask minute` types the commands of the
[README](../README.md#a-kernel-of-your-own-in-a-minute), and no others, into a shell with an empty
home, in a folder that has a wheel and [a kernel](../tests/newcomer/kernel.py) that is none of the
examples. It fails if a command fails, or if all take more than {LIMIT:.0f} s together.

On {date}, with {os.cpu_count()} cores, the picture was there after **{seen:.1f} s**, and all was done after
**{total:.1f} s**:

| seconds | command |
|--:|---|
{rows}

Only `pip install` needs the network, for Triton, which reads Python source; its {installed.seconds:.1f} s depend on
the network. Twill's wheel is a file, and needs no other package. TTIR needs no Triton, and nothing
needs a GPU. `pip` keeps no cache here, and is told to be quiet; nobody's typing is in the seconds.

The [recording](recordings/minute.cast) is in the format asciicast v2: `asciinema play` shows it in
a terminal. This is the picture:

![The timeline of the newcomer's kernel](pictures/minute.svg)
"""


def record(wheel: Path, say: Callable[[str], None] = print) -> None:
    """Types all of it on a machine that is as clean as this one can be, and writes the page."""
    with tempfile.TemporaryDirectory() as scratch:
        home, folder = Path(scratch, "home"), Path(scratch, "work")
        wheels = folder / "target" / "wheels"
        for new in (home, wheels):
            new.mkdir(parents=True)
        shutil.copy(wheel, wheels)
        shutil.copy(KERNEL, folder)
        when = int(time.time())
        terminal = Terminal(str(folder), clean(home))
        try:
            type_all(terminal, commands())
        finally:
            terminal.close()
        # Bars name lines by where the newcomer's folder is, which is no place of the project.
        picture = (folder / "timeline.svg").read_text(encoding="utf-8").replace(f"{folder.resolve()}{os.sep}", "")
    for file, text in (
        (CAST, terminal.cast(HEADING, when)),
        (PICTURE, picture),
        (PAGE, page(terminal.typed, time.strftime("%Y-%m-%d", time.gmtime(when)))),
    ):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for one in terminal.typed:
        say(f"{one.seconds:6.1f} s  {one.command}")
    say(f"{sum(one.seconds for one in terminal.typed):6.1f} s  in all; written to {PAGE.relative_to(ROOT)}")


def main() -> int:
    given = [Path(name) for name in sys.argv[1:]] or sorted((ROOT / "target" / "wheels").glob("twill_gpu-*.whl"))
    if len(given) != 1 or not given[0].is_file():
        sys.exit("usage: minute.py [WHEEL]; without one, `cargo xtask wheel` makes it")
    record(given[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
