"""Preprocessor of mdBook: links from docs/ to the rest of the repository, and the playground.

On GitHub `../crates/x.rs` is the file next to docs/. The built book stands in book/, next to docs/ too, so the same
link holds there. Once book.toml has a `git-repository-url`, the link leads to that repository instead.

Where `cargo xtask playground` has made the playground, it is put next to the chapters, and linked to.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PLAYGROUND = "twill-playground.html"
MARK = "<!-- the playground, in the book -->"

def rewritten(text: str, repository: str | None, depth: int = 0) -> str:
    """The text of a chapter that stands `depth` folders below docs/, with its links out of docs/ as the book has them."""
    up = "../" * (depth + 1)
    outside = re.compile(rf"\]\({re.escape(up)}([^)]+)\)")
    if repository:
        return outside.sub(lambda link: f"]({repository.rstrip('/')}/blob/HEAD/{link[1]})", text)
    # mdBook makes .html of every .md that it sees in a relative link; there is no such page outside the book.
    return outside.sub(lambda link: f"]({up}{link[1].replace('.md', '%2Emd')})", text)


def with_playground(text: str, made: Path) -> str:
    """The text with a link to the playground where its mark stands; mdBook takes the file along."""
    if MARK not in text or not made.is_file():
        return text
    shutil.copyfile(made, ROOT / "docs" / PLAYGROUND)
    return text.replace(MARK, f"**[Open the playground]({PLAYGROUND})**")


def rewrite(items: list[Any], repository: str | None) -> None:
    """Rewrites chapters and those below them, in place."""
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            chapter = item["Chapter"]
            chapter["content"] = rewritten(chapter["content"], repository, (chapter.get("path") or "").count("/"))
            chapter["content"] = with_playground(chapter["content"], ROOT / "target" / "playground.html")
            rewrite(chapter["sub_items"], repository)


def main() -> None:
    if sys.argv[1:2] == ["supports"]:
        sys.exit(0 if sys.argv[2:] == ["html"] else 1)
    context, book = json.load(sys.stdin)
    html = context["config"].get("output", {}).get("html", {})
    rewrite(book["items"], html.get("git-repository-url"))
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
