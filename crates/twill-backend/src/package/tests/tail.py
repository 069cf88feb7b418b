

def module(name):
    """launch.py or assemble.py of this folder."""
    spec = importlib.util.spec_from_file_location(f"kernel_{name}", HERE / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


class Compiles(unittest.TestCase):
    @unittest.skipIf(importlib.util.find_spec("triton") is None, "needs Triton")
    def test_compiles(self):
        report = module("assemble").assemble(HERE)
        self.assertGreater(report["registers"], 0)
        self.assertNotIn("too_large", [finding["kind"] for finding in report["findings"]])


if __name__ == "__main__":
    unittest.main()
