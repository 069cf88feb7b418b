"""The README and the first pages of the book link a term of the glossary where they use it first."""

import re
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path

from markdown import FENCE, ROOT, anchors

GLOSSARY = ROOT / "docs" / "glossary.md"

FIRST_PAGES = 3
"""So many pages of the book, in the order of its table of contents, which is the order in which they are read."""

ALSO = {"software-pipelining": ("software pipeline",), "modulo-schedule": ("modulo scheduling",), "spill": ("spilling",)}
"""Other forms of a word."""

LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")


@dataclass(frozen=True)
class Term:
    """A heading of the glossary."""

    anchor: str
    names: tuple[str, ...]
    """What texts call it."""

    def uses(self, text: str) -> list[re.Match[str]]:
        """Where it is named, in the singular or the plural."""
        names = "|".join(re.escape(name).replace(r"\ ", r"\s+").replace(r"\-", r"[-\s]") for name in self.names)
        return list(re.finditer(rf"(?<![\w.-])({names})s?(?![\w-])", text, re.IGNORECASE))

    def is_in(self, other: "Term") -> bool:
        """Whether another term's name has this one's in it: `CTA` in `CTA coarsening`."""
        return self != other and any(self.uses(name) for name in other.names)


def terms() -> list[Term]:
    """The terms of the glossary; a heading may name several: `Phase and parity`, `Resource bound (ResMII)`."""
    text = FENCE.sub("", GLOSSARY.read_text(encoding="utf-8"))
    known = anchors(GLOSSARY)
    found = []
    for heading in re.findall(r"^### (.+)$", text, re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        assert anchor in known, anchor
        names = tuple(name.strip() for name in re.split(r", | and |[()]", heading) if name.strip())
        found.append(Term(anchor, (*names, *ALSO.get(anchor, ()))))
    return found


def prose(file: Path) -> str:
    """What is read as text: no blocks, no `code`, no comments. Lines keep their numbers."""
    text = file.read_text(encoding="utf-8")
    for pattern in (FENCE, re.compile(r"<!--.*?-->", re.DOTALL), re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)):
        text = pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    return text


def pages() -> list[Path]:
    """The first pages of the book."""
    summary = (ROOT / "docs" / "SUMMARY.md").read_text(encoding="utf-8")
    return [ROOT / "docs" / link["target"] for link in LINK.finditer(summary)][:FIRST_PAGES]


def undefined(files: list[Path], known: list[Term]) -> list[str]:
    """Terms whose first use in these files, read one after the other, is no link to the glossary."""
    wrong = []
    left = {term: [other for other in known if term.is_in(other)] for term in known}
    for file in files:
        text = prose(file)
        links = list(LINK.finditer(text))
        # The address of a link is no use of what it names.
        addresses = [link.span("target") for link in links]
        for term, longer in list(left.items()):
            inside = [*addresses, *(use.span() for other in longer for use in other.uses(text))]
            uses = [use for use in term.uses(text) if not any(a <= use.start() < b for a, b in inside)]
            if not uses:
                continue
            del left[term]
            first = uses[0]
            around = next((link for link in links if link.start() <= first.start() < link.end()), None)
            target = around["target"] if around else ""
            if not target.endswith(f"glossary.md#{term.anchor}"):
                line = text.count("\n", 0, first.start()) + 1
                wrong.append(f"{file.name}:{line}: {first[0]!r} is used first here: link it to glossary.md#{term.anchor}")
    return wrong


class Terms(unittest.TestCase):
    def check(self, wrong: list[str]) -> None:
        self.assertFalse(wrong, "\n" + "\n".join(wrong))

    def test_a_first_use_without_a_link_is_found(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "a.md"
            page.write_text("```sh\nwgmma\n```\nA [Ping-pong](glossary.md#ping-pong), a\nCTA, two ping pongs.\n", encoding="utf-8")
            found = undefined([page], terms())
        self.assertEqual(found, ["a.md:5: 'CTA' is used first here: link it to glossary.md#cta"])

    def test_the_readme_defines_its_terms(self) -> None:
        self.check(undefined([ROOT / "README.md"], terms()))

    def test_the_first_pages_define_their_terms(self) -> None:
        self.assertEqual([page.name for page in pages()][:1], ["start.md"])
        self.check(undefined(pages(), terms()))


if __name__ == "__main__":
    unittest.main()
