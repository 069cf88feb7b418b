"""Calls of packages' functions with nothing of Twill's: a program for `twill collect`.

    twill collect -o kernels -- python -m bench.applications.plain --sources FOLDER --only fla
"""

import argparse
import sys
from pathlib import Path

from . import worker
from .__main__ import names

CALLS = 30
"""Calls of each function."""


def main() -> None:
    """Makes the calls."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=Path, help="a folder with a folder for each package, which holds its modules")
    parser.add_argument("--only", default="", help="cases in whose name this regular expression is found")
    options = parser.parse_args()
    sys.path[:0] = sorted(str(one) for one in options.sources.iterdir()) if options.sources else []
    import torch

    for name in names(options.only):
        made = worker.find(name).make()
        call = made[0] if isinstance(made, tuple) else made
        for _ in range(CALLS):
            call()
        torch.cuda.synchronize()
        print(name, flush=True)


if __name__ == "__main__":
    main()
