"""Contests whose outcome is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..contest import Contest, Gpu, Side


class Kept(Contest):
    """A contest with stock Triton as the incumbent, that says when it is settled."""

    def __init__(
        self,
        gpu: Gpu,
        sides: Sequence[Side],
        share: float | None,
        settled: Callable[[Contest], None],
        has_run: Callable[[], None],
    ):
        """has_run: called once all sides were launched and have ended."""
        super().__init__(gpu, sides, share)
        self._told, self._has_run, self._is_new = settled, has_run, True

    def _settle(self) -> None:
        super()._settle()
        self._told(self)

    def _collect(self) -> None:
        super()._collect()
        if self._is_new and self.has_run:
            self._is_new = False
            if self.winner is None:
                self._has_run()

    def forfeit(self, side: Side) -> None:
        was = self.winner
        super().forfeit(side)
        if self.winner is not None and self.winner != was:
            self._told(self)
