"""What the other tests rest on: a wrong output is seen, and links out of docs/ become what they should."""

import importlib.util
import tempfile
import unittest
from pathlib import Path

from markdown import ROOT, anchors, blocks
from running import commands, same


def repository_links():
    """The preprocessor of the book."""
    spec = importlib.util.spec_from_file_location("repository_links", ROOT / "xtask" / "repository_links.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Helpers(unittest.TestCase):
    def test_outputs_are_compared_but_for_times_and_ellipses(self) -> None:
        self.assertTrue(same("proved in 0.01 s\n", "proved in 12.5 s"))
        self.assertFalse(same("proved in 0.01 s", "proved in 0.01 ms"))
        self.assertTrue(same("I = 512\n…\nwritten", "I = 512\none\ntwo\nwritten\n"))
        self.assertFalse(same("I = 512", "I = 513"))
        self.assertFalse(same("I = 512", "I = 512\nmore"))
        self.assertFalse(same("I = 512 (a.b)", "I = 512 (acb)"))

    def test_commands_of_a_block(self) -> None:
        self.assertEqual(commands("a \\\n    --b\n# no command\n\nc # why\n"), ["a --b", "c # why"])

    def test_blocks_and_what_is_said_of_them(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "a.md"
            file.write_text("# A\n\n<!-- file: x.toml -->\n```toml\na = 1\n```\n\n```sh\nls\n```\n", encoding="utf-8")
            said = [(b.line, b.language, b.text, b.note, b.value) for b in blocks(file)]
        self.assertEqual(said, [(5, "toml", "a = 1\n", "file", "x.toml"), (9, "sh", "ls\n", None, "")])

    def test_names_of_headings(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "a.md"
            text = "# `twill fit`, and [why](b.md)\n## Why\n## Why\n```sh\n# no heading\n```\n"
            file.write_text(text, encoding="utf-8")
            self.assertEqual(anchors(file), {"twill-fit-and-why", "why", "why-1"})

    def test_links_out_of_the_book(self) -> None:
        rewritten = repository_links().rewritten
        text = "[a](../crates/a.rs) [b](../bench/b.md#c) [d](d.md)"
        self.assertEqual(rewritten(text, None), "[a](../crates/a.rs) [b](../bench/b%2Emd#c) [d](d.md)")
        there = "https://example.org/twill/blob/HEAD"
        expected = f"[a]({there}/crates/a.rs) [b]({there}/bench/b.md#c) [d](d.md)"
        self.assertEqual(rewritten(text, "https://example.org/twill/"), expected)

    def test_links_out_of_a_folder_of_the_book(self) -> None:
        rewritten = repository_links().rewritten
        text = "[a](../../bench/b.md) [d](../d.md)"
        self.assertEqual(rewritten(text, None, 1), "[a](../../bench/b%2Emd) [d](../d.md)")
        there = "https://example.org/twill/blob/HEAD"
        self.assertEqual(rewritten(text, "https://example.org/twill", 1), f"[a]({there}/bench/b.md) [d](../d.md)")


if __name__ == "__main__":
    unittest.main()
