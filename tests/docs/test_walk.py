"""The walk from TTIR to kernel.py in docs/architecture.md and the passes of docs/codegen.md are those of the sources."""

import re
import unittest
from pathlib import Path

from markdown import ROOT

CODEGEN = ROOT / "crates" / "twill-codegen" / "src"
CRATES = ROOT / "crates"

MOST_RETURNS = 10
"""More returns to a room left before are more than a reader can follow."""

HEADING = "## From a kernel to its code, file by file\n"

LINK = re.compile(r"\]\((?P<path>\.\./[^)#\s]+)\)")


def section(page: str, heading: str) -> str:
    """A section of a page of docs/, without its heading, up to the next of this level."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return text.split(f"\n{heading}", 1)[1].split("\n## ", 1)[0]


def passes() -> list[str]:
    """The names of the passes, in the order of pipeline.rs."""
    source = (CODEGEN / "pipeline.rs").read_text(encoding="utf-8")
    listed = source.split("pub const PASSES", 1)[1].split("\n];", 1)[0]
    return re.findall(r'Pass \{ name: "([^"]+)"', listed)


def file_of(name: str) -> set[Path]:
    """Where a pass may stand."""
    stem = name.replace("-", "_")
    return {CODEGEN / "passes" / f"{stem}.rs", CODEGEN / "passes" / stem / "mod.rs"}


class Walk(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.text = section("architecture.md", HEADING)
        # Lines that belong to a stay begin with spaces.
        cls.stays = re.findall(r"^(\d+)\. \*\*(.+?)\*\*(?:, return (\d+))?:((?:.*\n)(?: +.*\n)*)", cls.text, re.MULTILINE)

    def test_stays_are_numbered(self) -> None:
        self.assertEqual([int(number) for number, *_ in self.stays], list(range(1, len(self.stays) + 1)))
        self.assertEqual(len(self.stays), len(re.findall(r"^\d+\. ", self.text, re.MULTILINE)))

    def test_every_file_exists(self) -> None:
        named = LINK.findall(self.text)
        self.assertTrue(named)
        self.assertEqual([path for path in named if not (ROOT / "docs" / path).exists()], [])

    def test_every_stay_names_a_file_of_its_room(self) -> None:
        for number, room, _, text in self.stays:
            with self.subTest(number):
                crate, _, folder = room.partition("/")
                inside = (CRATES / crate / "src" / folder).resolve()
                files = [(ROOT / "docs" / path).resolve() for path in LINK.findall(text)]
                # `lower.rs` is the room `lower/` as well.
                self.assertTrue([file for file in files if inside in file.parents or file == inside.with_suffix(".rs")])
                self.assertTrue(inside.is_dir(), room)

    def test_passes_are_those_of_the_pipeline_in_its_order(self) -> None:
        walked = re.findall(r"^ +- `([\w-]+)`\s+\(\[`[^`]+`\]\((\S+?)\)\)", self.text, re.MULTILINE)
        self.assertEqual([name for name, _ in walked], passes())
        for name, path in walked:
            self.assertIn((ROOT / "docs" / path).resolve(), file_of(name))

    def test_returns_are_marked_and_few(self) -> None:
        entered: list[str] = []
        returns = 0
        for number, room, marked, _ in self.stays:
            with self.subTest(number):
                self.assertNotEqual(entered[-1:], [room], "one stay")
                returns += room in entered
                self.assertEqual(marked, str(returns) if room in entered else "")
            entered.append(room)
        self.assertLessEqual(returns, MOST_RETURNS)
        stated = re.search(r"There are\s+(\d+)\s+stays\s+in\s+(\d+)\s+rooms,\s+and\s+(\d+)\s+returns", self.text)
        self.assertIsNotNone(stated)
        self.assertEqual([int(number) for number in stated.groups()], [len(entered), len(set(entered)), returns])


class Passes(unittest.TestCase):
    def test_the_table_has_all_passes_in_their_order(self) -> None:
        rows = re.findall(r"^\| \[`([\w-]+)`\]\((\S+?)\) \|", section("codegen.md", "## The passes\n"), re.MULTILINE)
        self.assertTrue(rows)
        self.assertEqual([name for name, _ in rows], passes())
        for name, path in rows:
            self.assertIn((ROOT / "docs" / path).resolve(), file_of(name))


if __name__ == "__main__":
    unittest.main()
