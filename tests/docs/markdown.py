"""The Markdown files of the documentation: their code blocks, headings and links."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

REPORTS = sorted((ROOT / "docs" / "reports").glob("*.md"))
"""The chapters that commands write."""

CHAPTERS = sorted([*(ROOT / "docs").glob("*.md"), *REPORTS])
"""The chapters of the book, with its table of contents."""

FRONT = [ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")]
"""What people read first."""

PAGES = [*CHAPTERS, *FRONT, ROOT / "examples" / "README.md", ROOT / "bench" / "README.md"]
"""Everything whose links are checked."""

FENCE = re.compile(r"^```(?P<language>\S*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
NOTE = re.compile(r"<!-- (?P<key>[a-z ]+): (?P<value>.+?) -->\n\Z")
NOTES = ("not run", "file", "from", "output")


@dataclass(frozen=True)
class Block:
    """A fenced block, with what the comment above it says about it."""

    file: Path
    line: int
    """Of its first line of code, from 1."""
    language: str
    text: str
    note: str | None
    """One of NOTES."""
    value: str
    """What stands after the note's colon."""

    @property
    def place(self) -> str:
        """For messages."""
        return f"{self.file.relative_to(ROOT)}:{self.line}"


def blocks(file: Path) -> list[Block]:
    """The fenced blocks of a file, in their order."""
    text = file.read_text(encoding="utf-8")
    found = []
    for fence in FENCE.finditer(text):
        note = NOTE.search(text, 0, fence.start())
        line = text.count("\n", 0, fence.start("text")) + 1
        key, value = (note["key"], note["value"]) if note else (None, "")
        found.append(Block(file, line, fence["language"], fence["text"], key, value))
    return found


def prose(file: Path) -> str:
    """A file without its blocks and without `code`."""
    text = FENCE.sub("", file.read_text(encoding="utf-8"))
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)


def anchors(file: Path) -> set[str]:
    """The names of a file's headings in links, as GitHub makes them."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} (.+)$", FENCE.sub("", file.read_text(encoding="utf-8")), re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        found.add(next(n for n in (name, *(f"{name}-{i}" for i in range(1, 99))) if n not in found))
    return found
