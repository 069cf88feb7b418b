"""What Twill says when there is no schedule or kernel."""

from __future__ import annotations


class TwillError(Exception):
    """A kernel that cannot be scheduled, generated or run by Twill; the message says which, why, and the way out."""

    def __init__(self, message: str, place: tuple[str, int] | None = None):
        super().__init__(message)
        self.place = place
        """File and line of the user's own source that it is about, if it is about one."""


class InputError(TwillError):
    """A kernel, graph, machine or option that cannot be used."""


class InfeasibleError(TwillError):
    """There is no schedule; proved."""


class BudgetError(TwillError):
    """Nothing was found within the limits of time or work."""


class TwillWarning(UserWarning):
    """A kernel runs as stock Triton makes it; the message says which, why, and the way out."""
