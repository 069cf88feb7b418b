"""The code blocks of README.md and of the book do what they say (docs/architecture.md, "What the book says is tested").

TWILL_COMMAND names the command under test, by default target/release/twill.
"""

import importlib.util
import json
import tomllib
import unittest
from pathlib import Path

from markdown import CHAPTERS, NOTES, ROOT, Block, blocks
from running import TWILL, Folder, commands, same

GENERATED = {"paper-results.md"}
"""Its rows are run by what writes it, bench/schedule/paper_results.py, and by crates/twill-cli/tests."""

FILES = [ROOT / "README.md", *(file for file in CHAPTERS if file.name not in GENERATED)]

READERS = {
    "twill-graph": "twill lower {} --format graph",
    "twill-dataflow": "twill gaus {} --time-limit 1",
    "twill-schedule": "twill check {}",
}
"""What reads a document of a format."""

ANSWERS = (0, 2, 3)
"""Exit codes of answers; 1 is an error."""


def is_session(block: Block) -> bool:
    """Whether it shows commands, each after a `$`, and what they print."""
    return block.language == "text" and block.text.startswith("$ ")


class Blocks(unittest.TestCase):
    """One test for each file, its blocks in their order in one folder."""

    def setUp(self) -> None:
        self.assertTrue(TWILL.exists(), f"{TWILL} is missing: cargo build --release, or set TWILL")

    def check(self, file: Path) -> None:
        folder = Folder()
        self.addCleanup(folder.close)
        for block in blocks(file):
            with self.subTest(block.place):
                self.check_block(block, folder)
        self.check_python(file, folder)

    def check_block(self, block: Block, folder: Folder) -> None:
        self.assertIn(block.note, (None, *NOTES), "what is this comment?")
        if block.note == "not run":
            return
        if block.note == "from":
            source = (folder.path / block.value).read_text(encoding="utf-8")
            self.assertIn(" ".join(block.text.split()), " ".join(source.split()), f"{block.value} has other lines")
            return
        if block.note == "file":
            (folder.path / block.value).write_text(block.text, encoding="utf-8")
        if block.note == "output":
            self.check_output(block.value, block.text, folder)
        elif is_session(block):
            for session in block.text.removeprefix("$ ").split("\n$ "):
                command, _, output = session.partition("\n")
                self.check_output(command, output, folder)
        elif block.language == "sh":
            for command in commands(block.text):
                ran = folder.run(command)
                self.assertEqual(ran.returncode, 0, f"{command}\n{ran.stdout[-2000:]}{ran.stderr}")
        elif block.language == "json":
            self.check_json(block, folder)
        elif block.language == "toml":
            tomllib.loads(block.text)
        elif block.language not in ("python", "text"):
            language = block.language or "no language"
            self.fail(f"nothing checks a block of {language}: say `from: FILE` or `not run: WHY` above it")

    def check_output(self, command: str, expected: str, folder: Folder) -> None:
        ran = folder.run(f"exec 2>&1; {command}")
        self.assertIn(ran.returncode, ANSWERS, ran.stdout)
        self.assertTrue(same(expected, ran.stdout), f"{command}\nprints\n{ran.stdout}\nand not\n{expected}")

    def check_json(self, block: Block, folder: Folder) -> None:
        read = json.loads(block.text)
        reader = READERS.get(read.get("format"))
        if reader and block.note is None:
            name = f"block-{block.line}.json"
            (folder.path / name).write_text(block.text, encoding="utf-8")
            ran = folder.run(reader.format(name))
            self.assertEqual(ran.returncode, 0, ran.stderr)

    def check_python(self, file: Path, folder: Folder) -> None:
        """The blocks of one file are one program, whose lines have the numbers that they have in the file."""
        lines: list[str] = []
        for block in blocks(file):
            if block.language == "python" and block.note is None:
                lines += [""] * (block.line - 1 - len(lines)) + block.text.splitlines()
        if not lines:
            return
        with self.subTest(f"{file.relative_to(ROOT)}, Python"):
            for package in ("twill_gpu", "triton"):
                if importlib.util.find_spec(package) is None:
                    self.skipTest(f"{package} is not installed in {folder.path}")
            ran = folder.python("\n".join(lines) + "\n", f"{file.stem}_md.py")
            self.assertEqual(ran.returncode, 0, ran.stderr)


def named(file: Path):
    def test(self: Blocks) -> None:
        self.check(file)

    test.__doc__ = str(file.relative_to(ROOT))
    return test


for one in FILES:
    setattr(Blocks, f"test_{one.stem.replace('-', '_').lower()}", named(one))


if __name__ == "__main__":
    unittest.main()
