"""Which tiles make attention fastest on an H200? Needs no GPU. Ctrl-C keeps what there is; run again, it goes on.

python examples/scripts/sweep_attention.py --state attention.jsonl
"""

import argparse
import sys
from pathlib import Path

import twill_gpu

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from attention_forward import attention_forward  # noqa: E402

SPACE = {"BLOCK_M": [64, 128], "BLOCK_N": [64, 128, 256], "sub_tiles": [1, 2], "compute_groups": [1, 2]}
QUERIES, KEYS = "tensordesc<fp16[{BLOCK_M}, {HEAD_DIM}]>", "tensordesc<fp16[{BLOCK_N}, {HEAD_DIM}]>"
SIGNATURE = {
    **{"q_desc": QUERIES, "k_desc": KEYS, "v_desc": KEYS, "o_desc": QUERIES},
    **{"lse_ptr": "*fp32:16", "softmax_scale": "fp32", "length": "i32:16"},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state", metavar="FILE", help="keep what is done there")
    parser.add_argument("--head-dim", type=int, default=128, metavar="D")
    told = parser.parse_args()
    found = twill_gpu.sweep(
        attention_forward,
        SPACE,
        machine="h200",
        signature=SIGNATURE,
        constexprs={"HEAD_DIM": told.head_dim, "CAUSAL": False},
        where=lambda one: one["BLOCK_M"] >= 64 * one["sub_tiles"],
        solve=3,
        time_limit=10,
        state=told.state,
    )
    print(found)
    for row in found.pareto(length=True):
        print(
            f"front: {row.name}: {row.teraflops:.1f} TFLOP/s, {row.shared_bytes} bytes, {row.length} cycles an iteration"
        )


if __name__ == "__main__":
    main()
