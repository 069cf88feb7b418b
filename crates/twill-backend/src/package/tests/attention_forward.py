
BLOCK_M, BLOCK_N, HEAD_DIM, CAUSAL = (CONSTANTS[name] for name in ("BLOCK_M", "BLOCK_N", "HEAD_DIM", "CAUSAL"))
STEP = math.lcm(WHOLE * BLOCK_M, BLOCK_N)
"""Lengths are multiples of both blocks, with whole clusters along the first axis of the grid."""


class AttentionForward(Runs):
    def check(self, batch, heads, length, spread=1.0):
        size, rows = (batch * heads, length, HEAD_DIM), batch * heads * length
        # A wider spread makes a few keys dominate and the running maximum move.
        q, k, v = random(*size, scale=spread), random(*size), random(*size)
        o, lse = output(rows, HEAD_DIM), output(rows, dtype=torch.float32)
        scale = HEAD_DIM**-0.5
        inputs = (tensor.view(rows, HEAD_DIM) for tensor in (q, k, v))
        self.kernel(*inputs, o, lse, scale, length, grid=(length // BLOCK_M, batch * heads))
        wanted_o, wanted_lse = [], []
        for head in range(batch * heads):
            s = q[head].double() @ k[head].double().T * scale
            if CAUSAL:
                s = s.masked_fill(torch.ones_like(s, dtype=torch.bool).triu(1), -math.inf)
            wanted_o.append(torch.softmax(s, 1) @ v[head].double())
            wanted_lse.append(torch.logsumexp(s, 1) / math.log(2))
        self.agrees("o", o, torch.cat(wanted_o), 5e-4)
        self.agrees("lse", lse, torch.cat(wanted_lse), 1e-4)

    def test_short_loops(self):
        first = ceiling(LEAST, STEP)
        for steps in (first, first + 1, first + 2, first + 3, 7):
            with self.subTest(length=steps * STEP):
                self.check(1, 2, steps * STEP)

    def test_more_programs_than_multiprocessors(self):
        self.check(3, 17, 5 * STEP)

    def test_whole_rounds_of_tiles(self):
        self.check(1, torch.cuda.get_device_properties().multi_processor_count, 4 * STEP)

    def test_scores_far_apart(self):
        self.check(1, 2, 6 * STEP, spread=8)
