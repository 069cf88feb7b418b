"""Sections of docs/reports/trust.md, each a file of JSON in docs/reports/trust, of which `cargo xtask trust` makes it."""

import datetime
import json
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from command import ROOT


@dataclass
class Table:
    """Figures, a row for each thing that was tried."""

    columns: list[str]
    rows: list[list[object]]


def record(title: str, order: int, text: list[str], tables: list[Table], path: Path | None) -> None:
    """Writes a section with its day and what makes it again; prints it where no file is named.

    What was found stands in the file, and is kept."""
    program = Path(sys.argv[0]).resolve()
    words = [word for word in sys.argv[1:] if word not in ("--json", str(path))]
    name = program.relative_to(ROOT) if program.is_relative_to(ROOT) else program.name
    file = path.resolve() if path else Path("FILE")
    file = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file.name
    findings = json.loads(path.read_text())["findings"] if path is not None and path.exists() else []
    section = {
        "title": title,
        "order": order,
        "command": " ".join(["python", str(name), *words, "--json", str(file)]),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "machine": f"{os.cpu_count()} cores of {processor()}",
        "text": text,
        "tables": [{"columns": table.columns, "rows": table.rows} for table in tables],
        "findings": findings,
    }
    written = json.dumps(section, indent=2, ensure_ascii=False) + "\n"
    if path is None:
        print(written, end="")
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(written, encoding="utf-8")


def processor() -> str:
    """The processor of the machine."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
