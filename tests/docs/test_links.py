"""Links of the book and of the READMEs lead somewhere, the table of contents has every chapter, lines are wrapped."""

import re
import unittest

from markdown import CHAPTERS, FENCE, FRONT, PAGES, REPORTS, ROOT, anchors, prose

LINK = re.compile(r"\]\(([^)\s]+)\)")
SUMMARY = ROOT / "docs" / "SUMMARY.md"


class Links(unittest.TestCase):
    def test_every_link_leads_somewhere(self) -> None:
        wrong = []
        for page in PAGES:
            for link in LINK.findall(prose(page)):
                if re.match(r"[a-z]+:", link):
                    continue
                path, _, anchor = link.partition("#")
                target = (page.parent / path).resolve() if path else page
                if not target.exists():
                    wrong.append(f"{page.relative_to(ROOT)}: there is no {link}")
                elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                    wrong.append(f"{page.relative_to(ROOT)}: {link}: there is no such heading")
        self.assertEqual(wrong, [])

    def test_every_chapter_is_listed_once(self) -> None:
        listed = sorted(LINK.findall(SUMMARY.read_text(encoding="utf-8")))
        chapters = [file.relative_to(SUMMARY.parent).as_posix() for file in CHAPTERS if file != SUMMARY]
        self.assertEqual(listed, sorted(chapters))

    def test_every_chapter_begins_with_its_title(self) -> None:
        for file in CHAPTERS:
            with self.subTest(file.name):
                text = file.read_text(encoding="utf-8")
                self.assertRegex(text, r"\A# \S")

    def test_the_readme_fits_a_page_and_has_what_one_looks_for(self) -> None:
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        self.assertLessEqual(len(text.splitlines()), 100)
        for part in ("cargo run --release", "cargo xtask test", "cargo xtask wheel", "TWILL=1", ".png)", ".svg)", "python -m bench"):
            self.assertIn(part, text)

    def test_lines_are_wrapped(self) -> None:
        """Prose at 100 columns, rows of tables at 200; pages that commands write may have longer rows."""
        long = []
        for page in [*CHAPTERS, *FRONT]:
            for line in FENCE.sub("", page.read_text(encoding="utf-8")).splitlines():
                row = line.startswith("|")
                if len(line) > (200 if row else 100) and not line.startswith("<!--") and not (row and page in REPORTS):
                    long.append(f"{page.relative_to(ROOT)}: {line}")
        self.assertEqual(long, [])


if __name__ == "__main__":
    unittest.main()
