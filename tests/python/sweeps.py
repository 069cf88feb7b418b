"""The inputs of the tests of sweeps."""

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SIGNATURE = (
    "a_desc=tensordesc<fp16[{BLOCK_M}, {BLOCK_K}]>,b_desc=tensordesc<fp16[{BLOCK_N}, {BLOCK_K}]>,"
    "c_desc=tensordesc<fp16[{BLOCK_M}, {BLOCK_N}]>,K=i32:16"
)
TILES = {"BLOCK_M": [64, 128, 256], "BLOCK_N": [64, 128, 256], "BLOCK_K": [64], "sub_tiles": [1, 2]}
GEMM = {"machine": "h200", "signature": SIGNATURE, "progress": False}
ALONE = {**GEMM, "workers": 1}
"""A worker that begins nothing that may not be needed."""
ATTENTION = {
    "machine": "h200",
    "signature": {
        **{name: "tensordesc<fp16[{BLOCK_M}, {HEAD_DIM}]>" for name in ("q_desc", "o_desc")},
        **{
            name: lambda tile: f"tensordesc<fp16[{tile['BLOCK_N']}, {tile['HEAD_DIM']}]>"
            for name in ("k_desc", "v_desc")
        },
        **{"lse_ptr": "*fp32:16", "softmax_scale": "fp32", "length": "i32:16"},
    },
    "constexprs": {"CAUSAL": False, "HEAD_DIM": 128},
    # Some are hard; less work than to the end gives the same best.
    "options": {"work_limit": 1_000_000},
    "progress": False,
}
HEADS = {"BLOCK_M": [64, 128], "BLOCK_N": [64, 128, 256], "sub_tiles": [1, 2]}


def plain(found):
    return json.loads(found.to_json())


def keys_of(path):
    lines = path.read_text().splitlines()
    assert json.loads(lines[0])["format"] == "twill-sweep-journal"
    return [json.loads(line)["key"] for line in lines[1:]]
