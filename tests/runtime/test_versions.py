"""Tests of what a kernel in Gluon takes from the Triton that is installed: names of before and after they were changed."""

import types
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "crates/twill-backend/src/gluon/versions.py"


def taken(gl, tma):
    """The names of a kernel, where these are Gluon's."""
    names = {"gl": types.SimpleNamespace(**gl), "tma": types.SimpleNamespace(**tma)}
    exec(SOURCE.read_text(), names)
    return names["thread_barrier"], names["async_load"], names["async_store"]


class Names(unittest.TestCase):
    OLD = {"async_copy_global_to_shared": "old load", "async_copy_shared_to_global": "old store"}
    NEW = {"async_load": "load", "async_store": "store"}

    def test_old_ones_where_there_are_no_others(self):
        self.assertEqual(taken({"thread_barrier": "old"}, self.OLD), ("old", "old load", "old store"))

    def test_new_ones_wherever_they_are(self):
        self.assertEqual(taken({"barrier": "new"}, self.OLD), ("new", "old load", "old store"))
        # 3.9 still has the old names, which raise.
        self.assertEqual(taken({"barrier": "new"}, self.OLD | self.NEW), ("new", "load", "store"))


if __name__ == "__main__":
    unittest.main()
