"""The command, and its output."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Proved, an error, infeasible, stopped: all that it may end with. Anything else is a crash.
CODES = {0, 1, 2, 3}


def twill() -> str:
    """What TWILL_COMMAND names, or what cargo built last."""
    named = os.environ.get("TWILL_COMMAND")
    if named:
        return named
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = [path for path in (target / profile / "twill" for profile in ("release", "debug")) if path.exists()]
    if not built:
        raise FileNotFoundError("no twill: build it (cargo build), or name it in TWILL_COMMAND")
    return str(max(built, key=lambda path: path.stat().st_mtime))


def run(*arguments: object, seconds: float = 60, **variables: str) -> subprocess.CompletedProcess:
    """Runs the command; raises where it crashes or takes longer than N seconds."""
    words = [twill(), *map(str, arguments)]
    environment = {**os.environ, "TWILL_CACHE": "off", **variables}
    done = subprocess.run(words, env=environment, capture_output=True, timeout=seconds, cwd=ROOT, check=False)
    if done.returncode not in CODES or b"panicked" in done.stderr or b"overflowed its stack" in done.stderr:
        raise AssertionError(f"{' '.join(words)[:300]}: {done.returncode}: {done.stderr[-2000:]!r}")
    return done
