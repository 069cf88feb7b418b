"""`python -m twill_gpu.collecting`: the `twill collect` command."""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main())
