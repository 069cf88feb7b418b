"""The packages whose tests are run, and which of them come first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

STOCK, MAKING, CHECK, WAIT = "stock", "1", "check", "wait"
"""The phases of a test: by stock Triton, with Twill while kernels are made, and modes of Twill."""
FOLDER = "suites"
"""Where the sources have the repositories, package and tests of one commit."""


@dataclass(frozen=True)
class Suite:
    """A package's tests."""

    repository: str
    """The name of its folder."""
    tests: str
    """The folder of tests in it."""
    packages: tuple[str, ...]
    """Folders in it that hold packages."""
    first: tuple[str, ...]
    """Regular expressions for names of tests with products, the most important ones first: those that are run by default."""

    def folder(self, sources: Path) -> Path:
        """Where it is."""
        return (sources / FOLDER / self.repository).resolve()


SUITES = {
    "fla": Suite(
        "flash-linear-attention",
        "tests/ops",
        ("",),
        (
            r"test_(gla|delta|simple_gla|retention|linear_attn)\.py::test_chunk$",
            r"test_(attn|forgetting_attn)\.py::test_parallel$",
            r"test_gdn_kernels\.py::test_(chunk_fwd_o|chunk_gated_delta_rule_fwd_h|recompute_w_u_fwd|chunk_bwd_dv_local)$",
            r"test_(gsa|kda|gdn|rwkv6|comba|mesa)\.py::test_chunk$",
            r"test_(gla|delta|simple_gla|kda|gdn)\.py::test_chunk_varlen$",
            r"test_(based|attn|path_attn|retention)\.py::test_(based|parallel|parallel_varlen)$",
            r"test_gdn_kernels\.py::test_(prepare_wy_repr_bwd|chunk_gated_delta_rule_bwd_dhu|chunk_bwd_dqkwg)$",
            r"test_(simple_gla|linear_attn|ttt)\.py::test_(fused_chunk|parallel)$",
            r"test_(dplr_delta|iplr_delta|delta_product|gdn2|oja|log_linear_attn|deltaformer)\.py::test_(chunk|deltaformer_attn)$",
        ),
    ),
    "flag_gems": Suite(
        "FlagGems",
        "tests",
        ("src",),
        (
            r"tests/test_(mm|bmm|addmm|baddbmm)\.py::test_[a-z]*$",
            r"test_(scaled_dot_product_attention|flash_attention|flash_attn_varlen_func)\.py::",
            r"test_(grouped_mm|w8a8_block_fp8_matmul|matmul_bias_activation|conv2d|flash_mla)\.py::",
            r"test_FLA/test_chunk_gated_delta_rule",
        ),
    ),
    "liger": Suite(
        "Liger-Kernel",
        "test/transformers",
        ("src", ""),
        (
            r"test_(fused_neighborhood_attention|fused_moe|mlp|mhc|mm_int8int2)\.py::",
            r"test_(fused_linear_cross_entropy|multi_token_attention|flex_attention)\.py::",
        ),
    ),
}
"""By the names that the command has for them."""
