"""A shell in a terminal of its own, what it shows and when: a recording in the format asciicast v2."""

import json
import os
import pty
import re
import select
import time
from dataclasses import dataclass, field

COLUMNS, ROWS = 100, 30

PROMPT = r"$ \[\e]133;D;$?\a\]"
"""Ends with the exit code of the last command in a sequence that terminals know and do not show (OSC 133)."""

ENDED = re.compile(rb"\x1b\]133;D;(\d+)\x07")


@dataclass
class Typed:
    """A command, and what became of it."""

    command: str
    seconds: float
    code: int
    output: str


@dataclass
class Terminal:
    """Bash, with nothing in its environment but what it is given."""

    folder: str
    environment: dict[str, str]
    typed: list[Typed] = field(default_factory=list)
    events: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._process, self._file = pty.fork()
        if self._process == 0:
            os.chdir(self.folder)
            terminal = {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(ROWS), "PS1": PROMPT}
            shell = ["bash", "--noprofile", "--norc", "--noediting", "-i"]
            os.execvpe("bash", shell, self.environment | terminal)
        self._begin = time.monotonic()
        self._shown(time.monotonic() + 10)

    def type(self, command: str, limit: float) -> Typed:
        """Types a command and waits for the prompt, at most so many seconds; code 124 where it does not come."""
        begin = time.monotonic()
        os.write(self._file, command.encode() + b"\n")
        code, output = self._shown(begin + limit)
        done = Typed(command, time.monotonic() - begin, code, output)
        self.typed.append(done)
        return done

    def close(self) -> None:
        """Hangs up, which ends the shell and what runs in it."""
        os.close(self._file)
        os.waitpid(self._process, 0)

    def cast(self, title: str, when: int) -> str:
        """The recording."""
        header = {"version": 2, "width": COLUMNS, "height": ROWS, "timestamp": when, "title": title}
        lines = [header, *([round(at, 3), "o", text] for at, text in self.events)]
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)

    def _shown(self, until: float) -> tuple[int, str]:
        """What is shown up to the next prompt."""
        shown = b""
        pending = b""
        while not (ended := ENDED.search(shown)):
            if not select.select([self._file], [], [], max(0.0, until - time.monotonic()))[0]:
                return 124, shown.decode(errors="replace")
            try:
                part = os.read(self._file, 65536)
            except OSError:
                return 124, shown.decode(errors="replace")
            shown += part
            pending = ENDED.sub(b"", pending + part)
            try:
                text, pending = pending.decode(), b""
            except UnicodeDecodeError:
                # A character goes on in the next part.
                continue
            self.events.append((time.monotonic() - self._begin, text))
        return int(ended[1]), ENDED.sub(b"", shown).decode(errors="replace")
