"""Looks for data races where threads share something, with ThreadSanitizer.

    python tests/hostile/interleavings.py --json docs/reports/trust/interleavings.json

It needs a nightly toolchain. With its component rust-src the standard library is instrumented too; without, what is reported
within it is left out (SUPPRESSED).
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from command import ROOT
from figures import Table, record

# The state that threads share, and the tests that make them share it.
SUITES = {
    "the cache, the interrupt flag: 32 searching threads, one that clears": [
        "-p",
        "twill-driver",
        "--test",
        "shared_cache",
    ],
    "the cache: 8 writers": ["-p", "twill-driver", "--lib", "cache"],
    "GauS: sums in parallel on 1 to 8 threads": ["-p", "twill-gaus", "--lib", "relax"],
    "the viewer: clients": ["-p", "twill-cli", "--lib", "report::server"],
}

# Reports of a standard library without instrumentation: the end of a thread, and the last owner of an Arc (a fence, which
# ThreadSanitizer does not know).
SUPPRESSED = """race:std::thread
race:alloc::sync::Arc
race:std::sys::
race:core::ptr::drop_in_place<alloc::sync::Arc
race:test::
"""


def target() -> str:
    """The machine, as rustc names it."""
    said = subprocess.run(["rustc", "+nightly", "-vV"], capture_output=True, text=True, check=True).stdout
    return re.search(r"host: (\S+)", said)[1]


def has_sources() -> bool:
    """Returns whether the standard library can be built."""
    root = subprocess.run(
        ["rustc", "+nightly", "--print", "sysroot"], capture_output=True, text=True, check=True
    ).stdout
    return (Path(root.strip()) / "lib/rustlib/src/rust/library/std/Cargo.toml").exists()


def run(words: list[str], built: bool) -> tuple[int, int, str]:
    """Tests that passed, races that were reported, and the end of what was said."""
    with tempfile.TemporaryDirectory() as scratch:
        suppressed = Path(scratch) / "suppressed"
        suppressed.write_text("" if built else SUPPRESSED)
        environment = {
            **os.environ,
            "RUSTFLAGS": "-Zsanitizer=thread" + ("" if built else " -Cunsafe-allow-abi-mismatch=sanitizer"),
            "TSAN_OPTIONS": f"suppressions={suppressed} halt_on_error=0 exitcode=66",
        }
        command = ["cargo", "+nightly", "test", "--target", target(), *(["-Zbuild-std"] if built else []), *words]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    passed = sum(int(count) for count in re.findall(r"test result: ok\. (\d+) passed", said))
    races = len(re.findall(r"WARNING: ThreadSanitizer: data race", said))
    if done.returncode and not races:
        sys.exit(said[-4000:])
    return passed, races, said


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where the figures go")
    given = parser.parse_args()
    built, rows = has_sources(), []
    for name, words in SUITES.items():
        passed, races, said = run(words, built)
        if races:
            print(said, file=sys.stderr)
        rows.append([name, passed, races])
        print(rows[-1], file=sys.stderr, flush=True)
    library = (
        "instrumented as well" if built else "not instrumented, so that races which only it could show are not seen"
    )
    text = [
        "Searches share nothing but a flag that ends them and the cache on disk; GauS adds up in parallel; the viewer has a thread"
        f" for each client. Their tests under ThreadSanitizer, the standard library {library}."
    ]
    record("Interleavings", 50, text, [Table(["what is shared", "tests", "data races"], rows)], given.json)
    sys.exit(any(row[2] for row in rows))
