"""What the benchmarks share: the checkout, the command, the folder of results, the machine they run on."""

import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
TWILL = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "twill"
BUILD = "run: cargo build --release -p twill-cli"


def keep(name: str, text: str) -> None:
    """Writes bench/results/NAME."""
    path = RESULTS / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    print(f"written: {path.relative_to(ROOT)}", file=sys.stderr)


def write_section(path: Path, title: str, order: int, command: str, machine: str, text: list[str], columns, rows: list) -> None:
    """Writes a section of docs/reports/trust.md with one table, of which `cargo xtask trust --only page` makes the page.

    path: its file in docs/reports/trust. What was found stands in that, and is kept.
    """
    findings = json.loads(path.read_text(encoding="utf-8"))["findings"] if path.exists() else []
    section = {
        "title": title,
        "order": order,
        "command": command,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "machine": machine,
        "text": text,
        "tables": [{"columns": list(columns), "rows": rows}],
        "findings": findings,
    }
    path.write_text(json.dumps(section, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def z3() -> str | None:
    """Z3's command: the one next to this Python, then the one on the path."""
    own = Path(sys.executable).parent / "z3"
    return str(own) if own.is_file() else shutil.which("z3")


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def revision(*folders: str) -> str:
    """The commit of the checkout, and whether these folders differ from it; "unknown" outside a checkout."""
    try:
        commit = run(["git", "rev-parse", "--short", "HEAD"]).strip()
        changed = run(["git", "status", "--porcelain", "--", *folders]).strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit + (" with changes" if changed else "")


def run(command: list[str]) -> str:
    """What a command prints, run at the top of the checkout; an error if it fails."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
