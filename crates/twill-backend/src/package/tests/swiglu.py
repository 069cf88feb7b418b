
BLOCK_M, BLOCK_N, BLOCK_K = (CONSTANTS[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))


class SwiGlu(Runs):
    def check(self, m, n, k):
        # Weights so small that the dots are about one and nothing saturates.
        x, gate, up = random(m, k), random(n, k, scale=k**-0.5), random(n, k, scale=k**-0.5)
        y = output(m, n)
        self.kernel(x, gate, up, y, k, grid=(ceiling(m, BLOCK_M), ceiling(n, BLOCK_N)))
        g, u = (x.double() @ weights.double().T for weights in (gate, up))
        self.agrees("y", y, g * torch.sigmoid(g) * u, 5e-4)

    def test_short_loops(self):
        for trips in (1, 2, 3, 4, 7):
            with self.subTest(trips=trips):
                self.check(WHOLE * BLOCK_M, 2 * BLOCK_N, trips * BLOCK_K)

    def test_more_programs_than_multiprocessors(self):
        self.check(17 * WHOLE * BLOCK_M, 13 * BLOCK_N, 9 * BLOCK_K)

    def test_tiles_over_the_edge(self):
        self.check(3 * WHOLE * BLOCK_M - 16, 2 * BLOCK_N - 32, 5 * BLOCK_K - 16)
