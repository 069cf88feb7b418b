"""The components of Twill: licences and sources of its dependences, known vulnerabilities, unsafe code, and Miri.

python tests/hostile/supply.py --json docs/reports/trust/supply.json
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from command import ROOT
from figures import Table, record

CHECKS = ["licenses", "bans", "sources", "advisories"]

# Tests that Miri can run in minutes: plain data, no search, no files, no clock. Names that tests begin with.
MIRI = {
    "twill-graph": ["names::", "quantities::", "splitmix::", "dataflow::"],
    "twill-report": ["page::packed::", "picture::svg::"],
    "twill-machine": ["nearest::"],
}
MIRI_SECONDS = 600


def said(*words: str, seconds: float = 300) -> subprocess.CompletedProcess:
    """Runs a command at the top of the checkout, for at most N seconds."""
    try:
        return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 124, "", f"it took more than {seconds:g} seconds")


def denied() -> list[list[object]]:
    """The report of cargo deny, check by check."""
    if said("cargo", "deny", "--version").returncode:
        return [["cargo deny", "not installed: cargo install cargo-deny --locked"]]
    return [[f"cargo deny: {check}", verdict(check)] for check in CHECKS]


def verdict(check: str) -> str:
    """The report of cargo deny on one check. Without a network, advisories are those of the copy that there is."""
    done = said("cargo", "deny", "check", check)
    if done.returncode and "failed to fetch advisory database" in done.stderr:
        if copied() is None:
            return "not run: there is neither RustSec's database nor a copy of it"
        done = said("cargo", "deny", "--offline", "check", check)
    of = f" (RustSec's database of {copied()})" if check == "advisories" else ""
    return ("ok" if done.returncode == 0 else "FAILED: " + done.stderr[-300:]) + of


def copied() -> str | None:
    """The day of the copy of RustSec's database, if there is one."""
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    for copy in home.glob("advisory-dbs/advisory-db-*"):
        done = said("git", "-C", str(copy), "show", "-s", "--format=%cs", "HEAD")
        if done.returncode == 0:
            return done.stdout.strip()
    return None


def packages() -> list[list[object]]:
    """How many packages there are, and of which licences."""
    tree = json.loads(said("cargo", "metadata", "--format-version", "1", "--locked").stdout)
    others = [package for package in tree["packages"] if package["source"]]
    licences: dict[str, int] = {}
    for package in others:
        licences[package["license"] or "?"] = licences.get(package["license"] or "?", 0) + 1
    own = len(tree["packages"]) - len(others)
    rows: list[list[object]] = [
        ["packages of Twill", own],
        ["packages of others, build and tests included", len(others)],
    ]
    most = sorted(licences.items(), key=lambda item: -item[1])
    return rows + [[f"of these under {licence}", count] for licence, count in most]


def unsafe() -> list[list[object]]:
    """Where there is unsafe code of Twill's own."""
    files = [path for path in (ROOT / "crates").rglob("*.rs")]
    blocks = sum(len(re.findall(r"\bunsafe\s*(\{|fn|impl|trait|extern)", path.read_text())) for path in files)
    forbidden = "forbid" if 'unsafe_code = "forbid"' in (ROOT / "Cargo.toml").read_text() else "allowed"
    return [
        ["unsafe blocks, functions and implementations in crates/", blocks],
        ["lint unsafe_code", f"{forbidden}; deny in twill-py, where PyO3's macros bring their own"],
    ]


def miri() -> list[list[object]]:
    """The report of Miri on the tests that it can run."""
    if said("cargo", "+nightly", "miri", "--version").returncode:
        return [["Miri", "not installed: rustup +nightly component add miri rust-src"]]
    rows = []
    for package, names in MIRI.items():
        words = ["cargo", "+nightly", "miri", "test", "-p", package, "--lib", "--", *names]
        done = said(*words, seconds=MIRI_SECONDS)
        passed = sum(int(count) for count in re.findall(r"test result: ok\. (\d+) passed", done.stdout))
        rows.append(
            [f"Miri: {package}", f"{passed} tests" if done.returncode == 0 else "FAILED: " + done.stderr[-300:]]
        )
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where the figures go")
    given = parser.parse_args()
    rows = denied() + packages() + unsafe() + miri()
    text = [
        "`deny.toml` says what Twill may depend on. `cargo xtask sbom` writes a bill of materials (CycloneDX) of the command."
        " There is no unsafe code of Twill's own: the compiler refuses it."
    ]
    record("What it is made of", 60, text, [Table(["what", "found"], rows)], given.json)
    sys.exit(any("FAILED" in str(row[1]) for row in rows))
