"""The recording of a newcomer's first minute: what docs/minute.md says was recorded, and the README still says to type it."""

import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import minute
from minute import CAST, LIMIT, PAGE, PICTURE, type_all
from terminal import Terminal

sys.path.insert(0, str(minute.ROOT / "tests" / "hostile"))

from command import twill  # noqa: E402


class Recording(unittest.TestCase):
    """What is in the repository; `cargo xtask minute` makes it anew."""

    def rows(self) -> list[tuple[float, str]]:
        rows = re.findall(r"^\| ([\d.]+) \| `(.+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
        return [(float(seconds), command) for seconds, command in rows]

    def test_the_readme_says_what_was_typed(self) -> None:
        self.assertEqual([command for _, command in self.rows()], minute.commands())

    def test_it_took_less_than_a_minute(self) -> None:
        self.assertLess(sum(seconds for seconds, _ in self.rows()), LIMIT)

    def test_it_is_an_asciicast(self) -> None:
        header, *events = (json.loads(line) for line in CAST.read_text(encoding="utf-8").splitlines())
        self.assertEqual(header["version"], 2)
        self.assertGreater(header["width"] * header["height"], 0)
        times = [at for at, _, _ in events]
        self.assertEqual(times, sorted(times))
        self.assertAlmostEqual(times[-1], sum(seconds for seconds, _ in self.rows()), delta=1)
        shown = "".join(text for _, kind, text in events if kind == "o")
        for command in minute.commands():
            self.assertIn(f"$ {command}\r\n", shown)

    def test_the_picture_is_one(self) -> None:
        picture = PICTURE.read_text(encoding="utf-8")
        self.assertTrue(picture.startswith("<svg "))
        # Lines are named by the newcomer's file, wherever it was.
        self.assertIn(", kernel.py:", picture)
        self.assertNotRegex(picture, r"[ ,\"']/\w[^<\"]*\.py")


class Typing(unittest.TestCase):
    """What is typed into a terminal."""

    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name)

    def terminal(self, *first: str) -> Terminal:
        environment = minute.clean(self.folder)
        environment["PATH"] = os.pathsep.join([*first, environment["PATH"]])
        terminal = Terminal(str(self.folder), environment)
        self.addCleanup(terminal.close)
        return terminal

    def test_a_shell_keeps_what_it_is_told(self) -> None:
        terminal = self.terminal()
        type_all(terminal, ["a=é; cd /", "echo $a; pwd", "false || true"])
        self.assertEqual(terminal.typed[1].output.splitlines()[1:3], ["é", "/"])

    def test_a_command_that_fails_ends_it(self) -> None:
        terminal = self.terminal()
        with self.assertRaisesRegex(SystemExit, "false: exit code 1"):
            type_all(terminal, ["true", "false", "echo never"])
        self.assertEqual([one.code for one in terminal.typed], [0, 1])

    def test_more_than_the_time_ends_it(self) -> None:
        with self.assertRaisesRegex(SystemExit, "sleep 20: not done when 1 s"):
            type_all(self.terminal(), ["true", "sleep 20"], limit=1)

    def test_the_readme_works_with_what_is_installed_here(self) -> None:
        """But for what installs, and for the search of the fastest kernel, which takes most of the time."""
        for package in ("twill_gpu", "triton"):
            if importlib.util.find_spec(package) is None:
                self.skipTest(f"{package} is not installed")
        shown = self.folder / "bin"
        shown.mkdir()
        (shown / "twill").symlink_to(Path(twill()).resolve())
        shutil.copy(minute.KERNEL, self.folder)
        here = [one for one in minute.commands() if one.startswith("twill ") and " compile " not in one]
        self.assertGreaterEqual(len(here), 4)
        type_all(self.terminal(str(shown), str(Path(sys.executable).parent)), here)
        for made in ("timeline.svg", "report.html"):
            self.assertTrue((self.folder / made).is_file(), made)


if __name__ == "__main__":
    unittest.main()
