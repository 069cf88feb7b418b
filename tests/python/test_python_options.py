"""Options of commands whose words Python reads: shells and manual pages have them from a file, which `python tests/python/test_python_options.py`
writes.
"""

import json
from pathlib import Path

from twill_gpu.calibration import command as calibration
from twill_gpu.collecting import command as collecting
from twill_gpu.sweeping import command as sweeping

FILE = Path(__file__).resolve().parents[2] / "crates/twill-cli/src/python_options.json"
COMMANDS = {"calibrate": calibration, "collect": collecting, "sweep": sweeping}


def options():
    """By command: flags, the name of the value if there is one, and the help."""
    return {name: [option(one) for one in made.parser()._actions if one.option_strings] for name, made in COMMANDS.items()}


def option(one):
    value = None if one.nargs == 0 else one.metavar or one.dest.upper()
    return {"flags": one.option_strings, "value": value, "help": one.help}


def test_shells_and_manual_pages_have_the_options():
    assert json.loads(FILE.read_text(encoding="utf-8")) == options(), f"python {Path(__file__).name} writes {FILE.name} anew"


if __name__ == "__main__":
    FILE.write_text(json.dumps(options(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
