"""The chart of the README is the one that the kept results give, and shows what is slower as well."""

import json
import unittest
from xml.etree import ElementTree

from bench.gpu import chart
from bench.gpu.report import targets


class Chart(unittest.TestCase):
    def setUp(self) -> None:
        self.answer = json.loads(chart.RESULTS.read_text(encoding="utf-8"))

    def test_the_picture_is_that_of_the_results(self) -> None:
        kept = chart.PICTURE.read_text(encoding="utf-8")
        self.assertEqual(chart.drawn(self.answer), kept, "python -m bench.gpu.chart draws it again")

    def test_every_target_against_triton_and_libraries_is_a_bar(self) -> None:
        measured = [one for one in targets(self.answer) if one["against"] in chart.COLOURS]
        root = ElementTree.fromstring(chart.drawn(self.answer))
        said = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
        for one in measured:
            self.assertTrue(any(text.startswith(f"{one['measured']:.3f}") for text in said), one)
            self.assertIn(chart.title(one["row"]), said)
        self.assertIn(self.answer["gpu"]["name"], said[0])

    def test_rows_in_words(self) -> None:
        self.assertEqual(chart.title("forward-causal-d128-16k"), "attention forward causal d128, 16k keys")
        self.assertEqual(chart.title("gemm-pointers-4096"), "GEMM of pointers 4,096")
        self.assertEqual(chart.title("swiglu"), "swiglu")


if __name__ == "__main__":
    unittest.main()
