
class Runs(Runs):
    """The kernel is traced: it takes a buffer for timestamps as well."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        trace, kernel = KERNEL["trace"], cls.kernel
        buffer = torch.zeros(trace["bytes"] // 8, dtype=torch.int64, device=DEVICE)
        cls.kernel = lambda self, *args, **named: kernel(*args, **named, **{trace["parameter"]: buffer})

