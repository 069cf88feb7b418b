"""Command lines as the `twill` command has them: short help that fits 24 lines of 80 columns, and `--help-all`."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from typing import Any, NoReturn

COLUMNS = 80
ERROR = 1
"""Exit code."""


class Parser(argparse.ArgumentParser):
    """A command whose `-h` and `--help` show some options, and `--help-all` shows all with examples.

    short: options that short help shows, without dashes; the inputs always show.
    """

    def __init__(self, prog: str, takes: str, description: str, exit_codes: str, details: str, short: Collection[str]):
        super().__init__(
            prog=prog,
            usage=f"{prog} {takes}",
            description=description,
            epilog=f"Exit codes: {exit_codes}",
            formatter_class=_formatter,
            add_help=False,
        )
        self._details, self._short = details, {*short, "help", "help_all"}

    def parse(self, words: Sequence[str] | None = None) -> argparse.Namespace:
        """The arguments in words, or in the process's own. `--help` and `--help-all` come last in the help."""
        self.add_argument("-h", "--help", action=_Help, nargs=0, help="print help")
        self.add_argument("--help-all", action=_Help, nargs=0, help="print help on all options")
        return self.parse_args(words)

    def format_help(self) -> str:
        """What `--help` prints."""
        hidden = [one for one in self._actions if one.option_strings and one.dest not in self._short]
        before = [one.help for one in hidden]
        for one in hidden:
            one.help = argparse.SUPPRESS
        text = super().format_help()
        for one, help in zip(hidden, before):
            one.help = help
        return text

    def format_all(self) -> str:
        """What `--help-all` prints."""
        return super().format_help() + "\n" + self._details

    def error(self, message: str) -> NoReturn:
        """Ends with the exit code of errors, as the other commands do."""
        self.exit(ERROR, f"error: {message}; {self.prog} --help says more\n")


def _formatter(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=26, width=COLUMNS)


class _Help(argparse.Action):
    def __call__(
        self, parser: argparse.ArgumentParser, namespace: object, values: str | Sequence[Any] | None, option_string: str | None = None
    ) -> None:
        assert isinstance(parser, Parser), "it is of no other"
        print(parser.format_all() if self.dest == "help_all" else parser.format_help(), end="")
        parser.exit()
