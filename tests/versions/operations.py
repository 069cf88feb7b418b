"""The operations of TTIR's dialect in the installed Triton, as MLIR has them registered; a line: the version and their names.

    python tests/versions/operations.py >> crates/twill-triton/tests/data/operations.txt

Names are looked for in Triton's library, and each is given to its parser, which refuses what is not registered.
"""

import os
import re
import tempfile
from pathlib import Path

import triton
from triton._C.libtriton import ir


def main():
    library = Path(triton.__file__).parent / "_C" / "libtriton.so"
    found = {name.decode() for name in re.findall(rb"tt\.[a-z_0-9]+(?:\.[a-z_0-9]+)*", library.read_bytes())}
    context = ir.context()
    ir.load_dialects(context)
    with tempfile.TemporaryDirectory() as folder:
        names = [name for name in sorted(found) if is_registered(name, context, Path(folder) / "one.ttir")]
    print(f"{triton.__version__}:", *names)


def is_registered(name, context, file):
    """Whether the parser knows an operation: what it says of one without operands goes to standard error."""
    file.write_text(f'module {{\n  "{name}"() : () -> ()\n}}\n')
    read, write = os.pipe()
    kept = os.dup(2)
    os.dup2(write, 2)
    said = ""
    try:
        ir.parse_mlir_module(str(file), context)
    except RuntimeError as error:
        said = str(error)
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(write)
    with os.fdopen(read) as pipe:
        said += pipe.read()
    return "unregistered" not in said and "not registered" not in said


if __name__ == "__main__":
    main()
