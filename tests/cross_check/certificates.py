"""Certificates of random small problems: written, accepted by `twill check`, and their clauses unsatisfiable for Z3 as well.

    python tests/cross_check/certificates.py [--count 100] [--seed 20] [--twill target/release/twill]

Z3 reads the DIMACS file alone, so it confirms the propositional part independently of our unit propagation; that the clauses
hold is what `twill check` shows. Exit status 0 if all is well, 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from multiprocessing import Pool
from pathlib import Path

import z3
from generate import generate

HERE = Path(__file__).resolve().parent


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks certificates of random small problems.")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--twill", default=str(HERE.parents[1] / "target/release/twill"))
    parser.add_argument("--twill-argument", action="append", default=[], help="passed on to twill schedule")
    arguments = parser.parse_args()
    proofs = failed = 0
    with Pool(arguments.jobs) as pool:
        for number, found, wrong in pool.imap(check, [(arguments, n) for n in range(arguments.count)]):
            proofs += found
            if wrong:
                failed += 1
                print(f"case {number} of seed {arguments.seed}: {wrong}")
    print(f"{arguments.count - failed} certificates accepted, {failed} failed; Z3 refuted {proofs} proofs' clauses")
    # Without proofs by search nothing would have been tested.
    return 1 if failed or proofs < arguments.count // 4 else 0


def check(work: tuple[argparse.Namespace, int]) -> tuple[int, int, str | None]:
    arguments, number = work
    with tempfile.TemporaryDirectory() as directory:
        graph, folder = Path(directory) / "case.json", Path(directory) / "certificate"
        graph.write_text(json.dumps(generate(arguments.seed, number)))
        # Every third problem without a limit: if it is infeasible, then at every interval.
        limit = ["--max-interval", "12"] if number % 3 else []
        write = [arguments.twill, "schedule", str(graph), "--quiet", "--certificate", str(folder), *limit, *arguments.twill_argument]
        for command in (write, [arguments.twill, "check", str(folder)]):
            run = subprocess.run(command, capture_output=True, text=True, timeout=300)
            if run.returncode not in (0, 2):
                return number, 0, run.stderr.strip()
        files = sorted(folder.glob("*.cnf"))
        for file in files:
            solver = z3.Solver()
            solver.from_file(str(file))
            if solver.check() != z3.unsat:
                return number, 0, f"Z3 does not find {file.name} unsatisfiable"
        return number, len(files), None


if __name__ == "__main__":
    sys.exit(main())
