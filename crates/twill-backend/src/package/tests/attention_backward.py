
BLOCK_M, BLOCK_N, HEAD_DIM = (CONSTANTS[name] for name in ("BLOCK_M", "BLOCK_N", "HEAD_DIM"))
STEP = math.lcm(WHOLE * BLOCK_N, BLOCK_M)
"""Lengths are multiples of both blocks, with whole clusters along the first axis of the grid."""


class AttentionBackward(Runs):
    def check(self, batch, heads, length):
        size, rows = (batch * heads, length, HEAD_DIM), batch * heads * length
        q, k, v, do = (random(*size) for _ in range(4))
        scale = HEAD_DIM**-0.5
        wanted = {"dq": [], "dk": [], "dv": []}
        lse, delta = [], []
        for head in range(batch * heads):
            one_q, one_k, one_v, one_do = (tensor[head].double() for tensor in (q, k, v, do))
            s = one_q @ one_k.T * scale
            p = torch.softmax(s, 1)
            dp = one_do @ one_v.T
            ds = p * (dp - (p * dp).sum(1, keepdim=True))
            wanted["dq"].append(ds @ one_k * scale)
            wanted["dk"].append(ds.T @ one_q * scale)
            wanted["dv"].append(p.T @ one_do)
            lse.append(torch.logsumexp(s, 1) / math.log(2))
            delta.append(((p @ one_v).half().double() * one_do).sum(1))
        lse, delta = torch.cat(lse).float(), torch.cat(delta).float()
        # The kernel adds its part of dQ, and leaves the scale to the caller.
        dq = output(rows, HEAD_DIM, dtype=torch.float32, fill=0.0)
        dk, dv = output(rows, HEAD_DIM), output(rows, HEAD_DIM)
        inputs = (tensor.view(rows, HEAD_DIM) for tensor in (q, k, v, do))
        grid = (length // BLOCK_N, batch * heads)
        self.kernel(*inputs, dq, dk, dv, lse, delta, scale, length, grid=grid)
        self.agrees("dq", dq, torch.cat(wanted["dq"]) / scale, 1e-3)
        self.agrees("dk", dk, torch.cat(wanted["dk"]), 1e-3)
        self.agrees("dv", dv, torch.cat(wanted["dv"]), 1e-3)

    def test_short_loops(self):
        for steps in (1, 2, 3, 4, 7):
            with self.subTest(length=steps * STEP):
                self.check(1, 2, steps * STEP)

    def test_more_programs_than_multiprocessors(self):
        self.check(3, 17, 5 * STEP)
