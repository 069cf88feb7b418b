"""Preprocessor of mdBook: links from docs/ to the rest of the repository.

On GitHub `../crates/x.rs` is the file beside docs/. The built book stands in book/, beside docs/ too, so the same link
holds there. Once book.toml has a `git-repository-url`, the link leads to that repository instead.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

OUTSIDE = re.compile(r"\]\(\.\./([^)]+)\)")


def rewritten(text: str, repository: str | None) -> str:
    """A chapter's text with its links out of docs/ as the book has them."""
    if repository:
        return OUTSIDE.sub(lambda link: f"]({repository.rstrip('/')}/blob/HEAD/{link[1]})", text)
    # mdBook makes .html of every .md that it sees in a relative link; there is no such page outside the book.
    return OUTSIDE.sub(lambda link: f"](../{link[1].replace('.md', '%2Emd')})", text)


def rewrite(items: list[Any], repository: str | None) -> None:
    """Rewrites chapters and those below them, in place."""
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            chapter = item["Chapter"]
            chapter["content"] = rewritten(chapter["content"], repository)
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
