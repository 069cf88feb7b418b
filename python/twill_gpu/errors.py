"""What Twill says when it cannot make a kernel."""

from __future__ import annotations


class TwillError(Exception):
    """A kernel that cannot be scheduled, generated or run by Twill; the message says which, why, and the way out."""


class TwillWarning(UserWarning):
    """A kernel runs as stock Triton makes it; the message says which, why, and the way out."""
