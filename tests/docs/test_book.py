"""The book as mdBook builds it: links and anchors lead somewhere, and nothing is fetched."""

import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from markdown import CHAPTERS, ROOT

BESIDE = Path(sys.executable).parent / "mdbook"
MDBOOK = str(BESIDE) if BESIDE.exists() else shutil.which("mdbook")

FETCHED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}
"""What a browser fetches by itself, and the attribute that says from where."""


class Page(HTMLParser):
    """The ids, links and fetched resources of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.resources: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if identity := given.get("id"):
            self.ids.add(identity)
        if tag == "a" and (link := given.get("href")):
            self.links.append(link)
        if tag in FETCHED and (resource := given.get(FETCHED[tag])):
            self.resources.append(resource)


@unittest.skipUnless(MDBOOK, "needs mdbook: pip install --requirement tests/docs/requirements.txt")
class Book(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.site = Path(scratch.name)
        command = [MDBOOK, "build", "--dest-dir", cls.site]
        built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if built.returncode or "WARN" in built.stderr:
            raise AssertionError(built.stderr)
        cls.pages = {file: Page(file) for file in sorted(cls.site.rglob("*.html"))}

    def test_every_chapter_is_there(self) -> None:
        for chapter in CHAPTERS:
            if chapter.name != "SUMMARY.md":
                page = chapter.relative_to(ROOT / "docs").with_suffix(".html")
                self.assertIn(self.site / page, self.pages)

    def test_links_lead_somewhere(self) -> None:
        wrong = []
        for file, page in self.pages.items():
            for link in page.links:
                if re.match(r"[a-z]+:", link):
                    continue
                path, _, anchor = unquote(link).partition("#")
                target = (file.parent / path).resolve() if path else file
                outside = "../" * len(file.relative_to(self.site).parts)
                if path.startswith(outside):
                    # The book is built next to docs/, wherever this test builds it.
                    target = ROOT / path.removeprefix(outside)
                if not target.exists():
                    wrong.append(f"{file.name}: there is no {link}")
                elif anchor and target in self.pages and anchor not in self.pages[target].ids:
                    wrong.append(f"{file.name}: {link}: there is no such heading")
        self.assertEqual(wrong, [])

    def test_nothing_is_fetched_from_elsewhere(self) -> None:
        resources = [r for page in self.pages.values() for r in page.resources]
        self.assertTrue(resources)
        self.assertEqual([r for r in resources if re.match(r"([a-z]+:)?//", r)], [])
        styles = [file.read_text(encoding="utf-8") for file in self.site.rglob("*.css")]
        self.assertEqual([u for style in styles for u in re.findall(r"url\(['\"]?((?:[a-z]+:)?//[^)]+)", style)], [])

    def test_no_code_is_sent_to_a_playground(self) -> None:
        for file in self.pages:
            self.assertNotIn('class="playground"', file.read_text(encoding="utf-8"), file.name)


if __name__ == "__main__":
    unittest.main()
