"""Runs the tests of hostile names, inputs, interrupts and threads, and counts them for docs/reports/trust.md.

python tests/hostile/names.py --json docs/reports/trust/hostile.json
"""

import argparse
import sys
import unittest
from pathlib import Path

import test_inputs
import test_interrupts
import test_outputs
import test_concurrency
from figures import Table, record
from payloads import CONTROLS, PAYLOADS

MODULES = {
    "hostile names, every output read back": test_outputs,
    "nested, long, endless inputs; numbers that are none": test_inputs,
    "Ctrl-C, twice too; a short run of kills": test_interrupts,
    "1, 2 and 8 threads; 8 processes with one cache": test_concurrency,
}


def main() -> tuple[list[list[object]], bool]:
    """Tests by their module, and whether all passed."""
    rows, passed = [], True
    for name, module in MODULES.items():
        suite = unittest.defaultTestLoader.loadTestsFromModule(module)
        result = unittest.TextTestRunner(stream=sys.stderr).run(suite)
        rows.append([name, result.testsRun, len(result.failures) + len(result.errors), len(result.skipped)])
        passed &= result.wasSuccessful()
    return rows, passed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where the figures go")
    given = parser.parse_args()
    rows, passed = main()
    text = [
        f"{len(PAYLOADS)} names that end what they stand in (texts and comments of Python and C++, HTML, DOT, JSON, SMT-LIB, shells,"
        f" paths), or are words of these languages, and {len(CONTROLS)} with control characters, as operations, variables, functions,"
        " parameters, paths, symbols of libraries and files. What comes out is read back: Python by its own parser and tokenizer, C++"
        " without comments and texts, SVG as XML, DOT by Graphviz, JSON, SMT-LIB; [the browser](../../tests/browser) looks for anything that runs.",
        "Every reader is given nesting of 100,000 levels, names of 10 MB, files without end, and numbers that are none in every place"
        " of a machine file and of a graph. It has to say what is wrong in a few words, or answer.",
        "`twill report --open` listens on 127.0.0.1, answers `GET /` and `HEAD /` to a request that names this machine, and nothing else; clients that"
        " say nothing, half of a request, or do not read are let go (`crates/twill-cli/src/view/server.rs`).",
    ]
    record("Hostile input", 42, text, [Table(["what", "tests", "failures", "left out"], rows)], given.json)
    sys.exit(not passed)
