"""Preprocessor of mdBook: links from docs/ to the rest of the repository.

On GitHub `../crates/x.rs` is the file next to docs/. The built book stands in book/, next to docs/ too, so the same
link holds there. Once book.toml has a `git-repository-url`, the link leads to that repository instead.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

def rewritten(text: str, repository: str | None, depth: int = 0) -> str:
    """The text of a chapter that stands `depth` folders below docs/, with its links out of docs/ as the book has them."""
    up = "../" * (depth + 1)
    outside = re.compile(rf"\]\({re.escape(up)}([^)]+)\)")
    if repository:
        return outside.sub(lambda link: f"]({repository.rstrip('/')}/blob/HEAD/{link[1]})", text)
    # mdBook makes .html of every .md that it sees in a relative link; there is no such page outside the book.
    return outside.sub(lambda link: f"]({up}{link[1].replace('.md', '%2Emd')})", text)


def rewrite(items: list[Any], repository: str | None) -> None:
    """Rewrites chapters and those below them, in place."""
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            chapter = item["Chapter"]
            chapter["content"] = rewritten(chapter["content"], repository, (chapter.get("path") or "").count("/"))
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
