"""A command, and its cost: seconds, peak memory, and its end."""

import os
import subprocess
import tempfile
import time
from dataclasses import dataclass

from command import ROOT, twill


@dataclass
class Measured:
    """The cost of a run of the command."""

    code: int
    """As the shell has it; negative: the signal that ended it."""
    seconds: float
    megabytes: float
    """Most resident memory at a time, in 10^6 bytes."""
    stdout: str
    stderr: str


def measure(*arguments: object, kill_after: float = 300, **variables: str) -> Measured:
    """Runs the command at the top of the checkout; ends it by force after N seconds."""
    environment = {**os.environ, "TWILL_CACHE": "off", **variables}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begun = time.monotonic()
        process = subprocess.Popen([twill(), *map(str, arguments)], stdout=out, stderr=err, env=environment, cwd=ROOT)
        while True:
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            seconds = time.monotonic() - begun
            if ended:
                break
            if seconds > kill_after:
                process.kill()
            time.sleep(0.002)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        said = out.read().decode(errors="replace"), err.read().decode(errors="replace")
    return Measured(process.returncode, seconds, usage.ru_maxrss * 1024 / 1e6, *said)
