"""The reference of the Python package is what its docstrings give, and has every public name."""

import ast
import importlib.util
import os
import re
import sys
import unittest

from markdown import ROOT


def reference():
    """What writes the page."""
    spec = importlib.util.spec_from_file_location("python_reference", ROOT / "xtask" / "python_reference.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # For its dataclass.
    spec.loader.exec_module(module)
    return module


class Reference(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.made = reference()
        if os.environ.get("TWILL_WRITE"):
            cls.made.PAGE.write_text(cls.made.page(), encoding="utf-8")
        cls.page = cls.made.PAGE.read_text(encoding="utf-8")

    def test_it_is_what_the_docstrings_give(self) -> None:
        self.assertEqual(self.page, self.made.page(), "python xtask/python_reference.py writes it again")

    def test_every_public_name_is_there_and_says_what_it_is(self) -> None:
        text = (ROOT / "python" / "twill_gpu" / "__init__.py").read_text(encoding="utf-8")
        names = ast.literal_eval(re.search(r"__all__ = (\[.*?\])", text, re.DOTALL)[1])
        self.assertGreater(len(names), 30)
        sections = dict(re.findall(r"^### `(\S+)`\n(.*?)(?=^##|\Z)", self.page, re.MULTILINE | re.DOTALL))
        for name in names:
            self.assertIn(name, sections)
            self.assertRegex(re.sub(r"(?s)<!--.*?```\n.*?```|^Also a .*?$", "", sections[name]), r"\w{3}", name)

    def test_parameters_are_listed_and_methods_have_their_docstrings(self) -> None:
        self.assertIn("- `within`: how much longer", self.page)
        self.assertIn("- `save(path: str | os.PathLike[str]) -> None`: Writes its file", self.page)
        self.assertNotIn("_repr_", self.page)

    def test_arguments_are_split_where_no_bracket_is_open(self) -> None:
        given = "a: dict[str, int], *, b: str='x', c=f(1, 2)"
        self.assertEqual(self.made.split(given), ["a: dict[str, int]", "*", "b: str = 'x'", "c=f(1, 2)"])


if __name__ == "__main__":
    unittest.main()
