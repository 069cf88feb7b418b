"""The report's page as a widget of notebooks: it stands in the output itself, so there is no server and no network."""

from __future__ import annotations

import html

from . import _twill
from .errors import TwillError

HEIGHT = 640
"""Pixels; the widget's lower edge can be dragged."""


def page(text: str, name: str) -> str | None:
    """The page of a schedule's file (docs/report.md) in a frame, without an explanation, which would take seconds; None where
    there is no page.

    The frame is sandboxed: the page's script runs, and reaches neither the notebook nor its storage. The page itself asks for
    nothing (its Content-Security-Policy).
    """
    try:
        document = _twill.report(text, None)
    except TwillError:
        return None
    frame = (
        f'<iframe sandbox="allow-scripts" loading="lazy" title="{html.escape(f"Twill: {name}")}"'
        f' style="width: 100%; height: 100%; border: 0" srcdoc="{html.escape(document)}"></iframe>'
    )
    return f'<div class="twill-page" style="height: {HEIGHT}px; resize: vertical; overflow: hidden">{frame}</div>'
