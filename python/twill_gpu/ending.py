"""What has to be done when a process ends."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable


def at_end(call: Callable[[], object]) -> Callable[[], None]:
    """Calls something once when this process ends, and not when a forked child of it does; gives back what calls it now.

    Children of `multiprocessing` leave by `os._exit`, and do only what is registered with its own finalizers.
    """
    pid, left = os.getpid(), [call]

    def once() -> None:
        if os.getpid() == pid and left:
            left.pop()()
        atexit.unregister(once)

    atexit.register(once)
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.Finalize(None, once, exitpriority=0)
    return once
