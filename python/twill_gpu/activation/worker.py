"""A background process that makes kernels: `python -m twill_gpu.activation.worker`.

It reads a line of JSON for each kernel of Twill (`ttir`, `name`, `machine`, `options`, `folder`), or for stock Triton's with
other options (`ttir`, `compiled`), or for bounds (`ttirs`, `name`, `machine`), and answers with one: `{}`, `{"made": …}`,
`{"bounds": …}` or `{"error": …, "lasts": …}`; an error lasts if it is the kernel's. It ends, with all that it started, when its standard input
ends: no process outlives the one it works for.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import sys
import threading
from typing import Any

NICENESS = 10
LIMITS = {"processor_time": True}
"""A kernel that was made while others had the processors is as good as any: it is kept."""
BOUND_SECONDS = 5
"""How long a bound is searched for: most are proved within milliseconds."""


def answer(job: dict[str, Any]) -> dict[str, object]:
    """The answer to a question."""
    if "ttirs" in job:
        return {"bounds": [bound_of(ttir, job["name"], job["machine"]) for ttir in job["ttirs"]]}
    return configurations_of(job) if "compiled" in job else make(job)


def bound_of(ttir: str, name: str, machine: str) -> float | None:
    """Cycles that an iteration of each of a kernel's loops takes at least, together; None where there is no bound."""
    from .. import _twill, backend
    from ..scheduling import LoopSchedule

    try:
        texts, _ = _twill.schedule(backend.question("kernel", name, ttir, machine, {"time_limit": BOUND_SECONDS, **LIMITS}))
        return float(sum(LoopSchedule(text).lower_bound for text in texts)) or None
    except Exception:
        return None


def configurations_of(job: dict[str, Any]) -> dict[str, object]:
    """Has stock Triton compile a kernel with other options; what to answer."""
    from . import configurations

    try:
        return {"made": configurations.compile_all(job["ttir"], job["compiled"])}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "lasts": not is_of_the_system(error)}


def make(job: dict[str, Any]) -> dict[str, object]:
    """Makes a kernel in a new folder, and its machine code, in Triton's cache or there; what to answer."""
    from .. import backend
    from ..errors import TwillError
    from ..scheduled import ScheduledKernel

    try:
        made = backend.compile_kernel(job["ttir"], job["name"], job["machine"], {**job["options"], **LIMITS})
        kernel = ScheduledKernel(made, job["ttir"], job["machine"])
        kernel.compile()
        kernel.keep()
        os.rename(made, job["folder"])
    except TwillError as error:
        return {"error": str(error), "lasts": True}
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        if is_of_the_system(error):
            return {"error": why, "lasts": False}
        return {"error": f"the generated kernel does not compile: {why}", "lasts": True}
    return {}


def is_of_the_system(error: BaseException | None) -> bool:
    """Whether an error, or one that it was raised for, says nothing about a kernel: no memory, no space on a disk."""
    while error is not None:
        if isinstance(error, (OSError, MemoryError)):
            return True
        error = error.__cause__ or error.__context__
    return False


def main() -> None:
    """Answers until there are no more questions."""
    os.nice(NICENESS)
    # The application's memory comes first.
    os.environ.setdefault("TWILL_ASSEMBLERS", "1")
    answers = os.dup(1)
    # What compilers print is nobody's answer.
    os.dup2(2, 1)
    jobs: queue.Queue[str] = queue.Queue()

    def listen() -> None:
        for line in sys.stdin:
            jobs.put(line)
        # The process that this one works for has ended, and may not have had the time.
        folder = os.environ.get("TMPDIR", "")
        if os.path.basename(folder).startswith("twill-"):
            shutil.rmtree(folder, ignore_errors=True)
        # Compilers in other processes of this group end too. It leads the group, as it was started in a session of its own.
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        os.write(answers, (json.dumps(answer(json.loads(jobs.get()))) + "\n").encode())


if __name__ == "__main__":
    main()
