"""The errors of Twill where there is no schedule or kernel."""

from __future__ import annotations


class TwillError(Exception):
    """A kernel that cannot be scheduled, generated or run by Twill; the message says which, why, and the way out."""

    def __init__(self, message: str, place: tuple[str, int] | None = None):
        super().__init__(message)
        self.place = place
        """File and line of the user's own source that it is about, if it is about one."""


class InputError(TwillError, ValueError):
    """A kernel, graph, machine or value of an option that cannot be used."""


class OptionError(TwillError, TypeError):
    """A keyword or an option that there is not; the message says what may have been meant."""


class MissingError(TwillError, ImportError):
    """A package that a call needs and that is not installed; the message says how to install it."""


class InfeasibleError(TwillError):
    """There is no schedule; proved."""


class BudgetError(TwillError):
    """Nothing was found within the limits of time or work."""


class TwillWarning(UserWarning):
    """A kernel runs as stock Triton makes it; the message says which, why, and the way out."""
