
BLOCK_M, BLOCK_N, BLOCK_K = (CONSTANTS[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))


class Product(Runs):
    def check(self, m, n, k):
        a, b, c = random(m, k), random(n, k), output(m, n)
        self.kernel(a, b, c, k, grid=(ceiling(m, BLOCK_M), ceiling(n, BLOCK_N)))
        self.agrees("c", c, a.double() @ b.double().T, 5e-4)

    def test_short_loops(self):
        for trips in (1, 2, 3, 4, 7):
            with self.subTest(trips=trips):
                self.check(WHOLE * BLOCK_M, 2 * BLOCK_N, trips * BLOCK_K)

    def test_more_programs_than_multiprocessors(self):
        self.check(17 * WHOLE * BLOCK_M, 13 * BLOCK_N, 9 * BLOCK_K)

    def test_tiles_over_the_edge(self):
        self.check(3 * WHOLE * BLOCK_M - 16, 2 * BLOCK_N - 32, 5 * BLOCK_K - 16)
