#!/usr/bin/env python3
"""Print the TTIR of every example and fixture. Needs triton 3.6.0, or with --into 3.6 to 3.9; no GPU and no torch.

python examples/print_ttir.py                    write every file
python examples/print_ttir.py gemm_tma swiglu    write these
python examples/print_ttir.py --check            compare with the files; exit 1 on a difference
python examples/print_ttir.py --list             list the names
python examples/print_ttir.py --into DIR         write every file there instead, with whichever Triton is installed
python examples/print_ttir.py --cubin            also compile each file down to a cubin for sm_90
"""

import argparse
import difflib
import importlib
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

try:
    import triton
except ImportError:
    sys.exit("print_ttir needs triton: pip install -r examples/requirements.txt")

from triton._C.libtriton import ir  # noqa: E402
from triton.backends.compiler import GPUTarget, Language  # noqa: E402
from triton.compiler import ASTSource, make_backend  # noqa: E402

from quantised import variants as quantised  # noqa: E402
from serving import variants as serving  # noqa: E402

TRITON_VERSION = "3.6.0"
"""The version that the files belong to."""
EXAMPLES = Path(__file__).resolve().parent
TARGET = GPUTarget("cuda", 90, 32)


@dataclass(frozen=True)
class Variant:
    """One kernel with its compile-time arguments, and the file its TTIR goes to."""

    name: str
    kernel: str
    """Module and function, as in `gemm_tma.gemm_tma`."""
    arguments: dict
    """Run-time arguments and their types, in the order of the kernel's parameters."""
    constants: dict
    divisible: tuple = ()
    """Arguments that are multiples of 16, which Triton's launcher would find out by itself."""
    folder: str = ""
    form: str = "custom"
    """How MLIR prints the operations: in their `custom` form, as Triton does, or in the `generic` one."""
    edit: tuple = ()
    """Text to find, exactly once, and text to put in its place, for what Triton would fold away."""

    @property
    def path(self):
        return EXAMPLES / self.folder / f"{self.name}.ttir"


def tile(*extents, element="fp16"):
    """The type of a tensor descriptor for tiles of this shape."""
    return f"tensordesc<{element}{list(extents)}>"


def gemm_tma(name="gemm_tma", rows=128, columns=128):
    return Variant(
        name=name,
        kernel="gemm_tma.gemm_tma",
        arguments={
            "a_desc": tile(rows, 64),
            "b_desc": tile(columns, 64),
            "c_desc": tile(rows, columns),
            "K": "i32",
        },
        constants={"BLOCK_M": rows, "BLOCK_N": columns, "BLOCK_K": 64},
        divisible=("K",),
    )


def gemm_pointers(rows=128, columns=128, **where):
    pointers = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16"}
    sizes = {name: "i32" for name in ("M", "N", "K", "stride_a", "stride_b", "stride_c")}
    return Variant(
        kernel="gemm_pointers.gemm_pointers",
        arguments=pointers | sizes,
        constants={"BLOCK_M": rows, "BLOCK_N": columns, "BLOCK_K": 64},
        divisible=(*pointers, *sizes),
        **({"name": "gemm_pointers"} | where),
    )


def gemm_bias_gelu(name, columns):
    return Variant(
        name=name,
        kernel="gemm_bias_gelu.gemm_bias_gelu",
        arguments={
            "x_desc": tile(128, 64),
            "w_desc": tile(columns, 64),
            "bias_ptr": "*fp32",
            "r_desc": tile(128, columns),
            "y_desc": tile(128, columns),
            **dict.fromkeys("MNK", "i32"),
        },
        constants={"BLOCK_M": 128, "BLOCK_N": columns, "BLOCK_K": 64, "GROUP_M": 8},
        divisible=("bias_ptr", "M", "N", "K"),
    )


def gemm_rmsnorm(name, columns):
    return Variant(
        name=name,
        kernel="gemm_rmsnorm.gemm_rmsnorm",
        arguments={
            "x_desc": tile(128, 64),
            "w_desc": tile(columns, 64),
            "y_desc": tile(128, columns),
            "epsilon": "fp32",
            "K": "i32",
        },
        constants={"BLOCK_M": 128, "BLOCK_N": columns, "BLOCK_K": 64},
        divisible=("K",),
    )


def gemm_gathered(name, columns):
    return Variant(
        name=name,
        kernel="gemm_gathered.gemm_gathered",
        arguments={
            "a_ptr": "*fp16",
            "list_ptr": "*i32",
            "b_desc": tile(columns, 64),
            "c_desc": tile(128, columns),
            **dict.fromkeys(("M", "K", "stride_a"), "i32"),
        },
        constants={"BLOCK_M": 128, "BLOCK_N": columns, "BLOCK_K": 64},
        divisible=("a_ptr", "list_ptr", "M", "K", "stride_a"),
    )


def attention_mla():
    rows = (("q", 128), ("k", 128))
    parts = {f"{tensor}{part}_desc": tile(extent, columns)
             for tensor, extent in rows for part, columns in (("", 128), ("_rope", 64))}
    return Variant(
        name="attention_mla",
        kernel="attention_mla.attention_mla",
        arguments={
            **parts,
            "v_desc": tile(128, 128),
            "o_desc": tile(128, 128),
            "lse_ptr": "*fp32",
            "softmax_scale": "fp32",
            "length": "i32",
        },
        constants={"HEAD_DIM": 128, "BLOCK_M": 128, "BLOCK_N": 128},
        divisible=("lse_ptr", "length"),
    )


def attention_forward(name, head_dim, causal, queries=128, keys=128, **where):
    return Variant(
        name=name,
        kernel="attention_forward.attention_forward",
        arguments={
            **{
                tensor: tile(rows, head_dim)
                for tensor, rows in (("q_desc", queries), ("k_desc", keys), ("v_desc", keys), ("o_desc", queries))
            },
            "lse_ptr": "*fp32",
            "softmax_scale": "fp32",
            "length": "i32",
        },
        constants={"HEAD_DIM": head_dim, "BLOCK_M": queries, "BLOCK_N": keys, "CAUSAL": causal},
        divisible=("lse_ptr", "length"),
        **where,
    )


def attention_backward(name, head_dim, causal=False, rows=64, **where):
    queries, keys = tile(rows, head_dim), tile(128, head_dim)
    return Variant(
        name=name,
        kernel="{0}.{0}".format("attention_backward_causal" if causal else "attention_backward"),
        arguments={
            "q_desc": queries,
            "k_desc": keys,
            "v_desc": keys,
            "do_desc": queries,
            "dq_desc": tile(rows, head_dim, element="fp32"),
            "dk_desc": keys,
            "dv_desc": keys,
            "lse_ptr": "*fp32",
            "delta_ptr": "*fp32",
            "softmax_scale": "fp32",
            "length": "i32",
        },
        constants={"HEAD_DIM": head_dim, "BLOCK_M": rows, "BLOCK_N": 128},
        divisible=("lse_ptr", "delta_ptr", "length"),
        **where,
    )


def tutorial_attention(name, head_dim, causal, warp_specialize=False, **where):
    descriptors = {f"desc_{tensor}": tile(128, head_dim) for tensor in "qkvo"}
    return Variant(
        name=name,
        kernel="tutorial_attention._attn_fwd",
        arguments={"sm_scale": "fp32", "M": "*fp32", "Z": "i32", "H": "i32", **descriptors, "N_CTX": "i32"},
        constants={
            **{"HEAD_DIM": head_dim, "BLOCK_M": 128, "BLOCK_N": 128},
            **{"STAGE": 3 if causal else 1, "warp_specialize": warp_specialize},
        },
        divisible=("M", "N_CTX"),
        **where,
    )


def swiglu():
    weights = tile(128, 64)
    return Variant(
        name="swiglu",
        kernel="swiglu.swiglu",
        arguments={
            "x_desc": tile(128, 64),
            "gate_desc": weights,
            "up_desc": weights,
            "y_desc": tile(128, 128),
            "K": "i32",
        },
        constants={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
        divisible=("K",),
    )


def nested_loops():
    return Variant(
        name="nested_loops",
        folder="fixtures",
        kernel="fixtures.fixtures.nested_loops",
        arguments={
            **{"a_desc": tile(128, 64), "b_desc": tile(128, 64), "c_desc": tile(128, 128)},
            **{"M": "i32", "N": "i32", "K": "i32"},
        },
        constants={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
        divisible=("M", "N", "K"),
    )


def no_loop():
    return Variant(
        name="no_loop",
        folder="fixtures",
        kernel="fixtures.fixtures.no_loop",
        arguments={"x_ptr": "*fp32", "y_ptr": "*fp32", "z_ptr": "*fp32", "length": "i32"},
        constants={"BLOCK": 1024},
        divisible=("x_ptr", "y_ptr", "z_ptr"),
    )


def zero_trip():
    return Variant(
        name="zero_trip",
        folder="fixtures",
        kernel="fixtures.fixtures.zero_trip",
        arguments={"x_ptr": "*fp32", "y_ptr": "*fp32", "trips": "i32"},
        constants={"BLOCK": 128},
        divisible=("x_ptr", "y_ptr"),
        edit=("to %trips step", "to %c0_i32 step"),
    )


def accumulators():
    return Variant(
        name="accumulators",
        folder="fixtures",
        kernel="fixtures.fixtures.accumulators",
        arguments={
            **{"a_desc": tile(128, 64), "b_desc": tile(128, 64), "c_desc": tile(128, 128)},
            **{"scale_ptr": "*fp32", "bias_ptr": "*fp32", "K": "i32"},
        },
        constants={"BLOCK": 128, "BLOCK_K": 64},
        divisible=("scale_ptr", "bias_ptr", "K"),
    )


def mapped():
    return Variant(
        name="mapped",
        folder="fixtures",
        kernel="fixtures.fixtures.mapped",
        arguments={
            **{"a_desc": tile(64, 64), "b_desc": tile(64, 64), "c_ptr": "*fp32", "d_ptr": "*fp32"},
            **{"slope": "fp32", "K": "i32"},
        },
        constants={"BLOCK": 64, "BLOCK_K": 64},
        divisible=("c_ptr", "d_ptr", "K"),
    )


def attention_relu():
    return Variant(
        name="attention_relu",
        folder="fixtures",
        kernel="fixtures.fixtures.attention_relu",
        arguments={f"{tensor}_desc": tile(128, 64) for tensor in "qkvo"} | {"length": "i32"},
        constants={"BLOCK_M": 128, "BLOCK_N": 128, "D": 64},
        divisible=("length",),
    )


def attention_alibi():
    return Variant(
        name="attention_alibi",
        folder="fixtures",
        kernel="fixtures.fixtures.attention_alibi",
        arguments={
            "q_desc": tile(128, 64),
            "k_desc": tile(64, 64),
            "v_desc": tile(64, 64),
            "o_desc": tile(128, 64),
            "slope": "fp32",
            "length": "i32",
        },
        constants={"BLOCK_M": 128, "BLOCK_N": 64, "D": 64},
        divisible=("length",),
    )


def epilogue(kernel, element="fp16", columns=128, parameters=(), **constants):
    """A kernel of fixtures/epilogues.py: the product's arguments, then its own in the order of `parameters`."""
    arguments = {"a_desc": tile(128, 64), "b_desc": tile(columns, 64)}
    if kernel != "residual_pointers":
        arguments["c_desc"] = tile(128, columns, element=element)
    kind = constants.get("KIND")
    return Variant(
        name=f"epilogue_{kind}" if kind else f"epilogue_{kernel}",
        folder="fixtures",
        kernel=f"fixtures.epilogues.{kernel}",
        arguments=arguments | dict(parameters),
        constants={"BLOCK_M": 128, "BLOCK_N": columns, "BLOCK_K": 64, **constants},
        divisible=tuple(name for name, kind in dict(parameters).items() if kind == "i32" or kind.startswith("*")),
    )


def product(
    kernel, name=None, element="fp16", a=(128, 64), b=(128, 64), c=(128, 128), parameters=("K",), result=None, **constants
):
    """A kernel of fixtures/products.py on tensor descriptors."""
    descriptors = {
        "a_desc": tile(*a, element=element),
        "b_desc": tile(*b, element=element),
        "c_desc": tile(*c, element=result or element),
    }
    return Variant(
        name=f"product_{name or kernel}",
        folder="fixtures",
        kernel=f"fixtures.products.{kernel}",
        arguments=descriptors | (parameters if isinstance(parameters, dict) else dict.fromkeys(parameters, "i32")),
        constants={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, **constants},
        divisible=tuple(parameters),
    )


def moving_pointers(name, wrap):
    pointers = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16"}
    sizes = ("M", "N", "K", "stride_am", "stride_bk", "stride_cm")
    order = ("M", "N", "K", "stride_am", "stride_ak", "stride_bk", "stride_bn", "stride_cm", "stride_cn")
    units = {"stride_ak": 1, "stride_bn": 1, "stride_cn": 1}
    return Variant(
        name=name,
        folder="fixtures",
        kernel="fixtures.products.moving_pointers",
        arguments=pointers | {size: "i32" for size in order if size not in units},
        constants={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8, "WRAP": wrap, **units},
        divisible=(*pointers, *sizes),
    )


def control_flow(kernel):
    return Variant(
        name=kernel,
        folder="fixtures/in_order",
        kernel=f"fixtures.control_flow.{kernel}",
        arguments={"x_ptr": "*fp16", "y_ptr": "*fp16", "out_ptr": "*fp16", "n": "i32"},
        constants={"BLOCK": 16},
        divisible=("x_ptr", "y_ptr", "out_ptr"),
    )


def pointers(
    kernel, divisible=("x_ptr", "y_ptr", "out_ptr"), element="*fp16", scalars=("n",), module="pointers", **constants
):
    return Variant(
        name=kernel,
        folder=f"fixtures/{module}",
        kernel=f"fixtures.{module}.{kernel}",
        arguments={"x_ptr": element, "y_ptr": element, "out_ptr": "*fp16", **dict.fromkeys(scalars, "i32")},
        constants=constants,
        divisible=divisible,
    )


def tables():
    pointers = ("xs_ptr", "ys_ptr", "outs_ptr")
    return Variant(
        name="tables",
        folder="fixtures/loops",
        kernel="fixtures.loops.tables",
        arguments={**dict.fromkeys(pointers, "*i64"), "count": "i32", "n": "i32"},
        constants={"BLOCK": 64},
        divisible=pointers,
    )


def shared(kernel, flag):
    """Programs that share a result, and a number in memory that says whose turn it is."""
    return Variant(
        name=kernel,
        folder="fixtures/loops",
        kernel=f"fixtures.loops.{kernel}",
        arguments={"x_ptr": "*fp16", "y_ptr": "*fp16", "out_ptr": "*fp16", "n": "i32", flag: "*i32"},
        constants={"BLOCK": 64},
        divisible=("x_ptr", "y_ptr", "out_ptr"),
    )


def listed():
    pointers = ("q_ptr", "k_ptr", "v_ptr", "out_ptr")
    return Variant(
        name="listed",
        folder="fixtures/loops",
        kernel="fixtures.loops.listed",
        arguments={**dict.fromkeys(pointers, "*fp16"), "counts_ptr": "*i32", "list_ptr": "*i32", "scale": "fp32"},
        constants={"BLOCK": 64, "DIM": 64},
        divisible=pointers,
    )


LOOPS = (
    *("persistent", "carrying", "deep", "returning", "clearing", "dependent", "chosen", "adding", "recurrent", "branching"),
    *("multiplying", "following", "scaled", "grouped", "filled", "counting", "dividing", "chained", "leaving", "ending"),
)

VARIANTS = [
    gemm_tma(),
    gemm_tma("gemm_tma_n256", columns=256),
    gemm_tma("gemm_tma_m256", rows=256),
    gemm_pointers(),
    gemm_pointers(name="gemm_pointers_n256", columns=256),
    gemm_pointers(name="gemm_pointers_m256", rows=256),
    attention_forward("attention_forward", 128, False),
    attention_forward("attention_forward_d64", 64, False),
    attention_forward("attention_forward_d64_m64", 64, False, queries=64),
    attention_forward("attention_forward_m256", 128, False, queries=256),
    attention_forward("attention_forward_d256", 256, False, keys=64),
    attention_forward("attention_forward_causal", 128, True),
    attention_forward("attention_forward_causal_d64", 64, True),
    attention_forward("attention_forward_causal_d64_m64", 64, True, queries=64),
    attention_backward("attention_backward", 128),
    attention_backward("attention_backward_d64", 64),
    attention_backward("attention_backward_m128", 128, rows=128),
    attention_backward("attention_backward_causal", 128, causal=True),
    attention_mla(),
    swiglu(),
    gemm_bias_gelu("gemm_bias_gelu", 128),
    gemm_bias_gelu("gemm_bias_gelu_n256", 256),
    gemm_rmsnorm("gemm_rmsnorm", 128),
    gemm_rmsnorm("gemm_rmsnorm_n256", 256),
    gemm_gathered("gemm_gathered", 128),
    gemm_gathered("gemm_gathered_n256", 256),
    tutorial_attention("tutorial_attention", 128, False),
    tutorial_attention("tutorial_attention_causal", 128, True),
    tutorial_attention("tutorial_attention_causal_d64", 64, True),
    gemm_pointers(name="gemm_pointers_generic", folder="fixtures", form="generic"),
    attention_forward("attention_forward_generic", 128, False, folder="fixtures", form="generic"),
    attention_backward("attention_backward_generic", 128, folder="fixtures", form="generic"),
    tutorial_attention("tutorial_attention_warp_specialize", 128, True, warp_specialize=True, folder="fixtures"),
    nested_loops(),
    no_loop(),
    zero_trip(),
    accumulators(),
    mapped(),
    attention_relu(),
    attention_alibi(),
    epilogue("bias_vector", parameters={"bias_ptr": "*fp16", "K": "i32"}),
    epilogue("bias_vector_masked", parameters={"bias_ptr": "*fp32", "N": "i32", "K": "i32"}),
    epilogue("residual_tile", parameters={"r_desc": tile(128, 128), "K": "i32"}),
    epilogue(
        "residual_pointers",
        parameters={"c_ptr": "*fp16", "r_ptr": "*fp16", "M": "i32", "N": "i32", "K": "i32", "stride": "i32"},
    ),
    *(
        epilogue("activation", parameters={"K": "i32", "slope": "fp32"}, KIND=kind)
        for kind in (
            "erf", "sigmoid", "tanh", "libdevice_tanh", "libdevice_pow", "rsqrt", "where", "clamp", "limits", "softmax",
            "integers", "unsigned",
        )
    ),
    product("out_dtype", name="bf16", element="bf16"),
    product("half_sums"),
    product("two_sums"),
    product("batched", a=(1, 128, 64), b=(1, 128, 64), c=(1, 128, 128)),
    product("transposed", name="left_transposed", a=(64, 128), LEFT=True, RIGHT=True),
    product("transposed", name="neither_transposed", b=(64, 128), LEFT=False, RIGHT=False),
    product("grouped_order", parameters=("M", "N", "K"), GROUP_M=8),
    product("returning", parameters={"limits_ptr": "*i32", "M": "i32", "K": "i32"}),
    product("guarded", parameters=("M", "K")),
    product("column_sums"),
    product("branching", parameters={"bias_ptr": "*fp32", "counts_ptr": "*fp32", "K": "i32"}),
    moving_pointers("product_moving_pointers", False),
    moving_pointers("product_wrapped_pointers", True),
    *(control_flow(kernel) for kernel in ("early_return", "nested", "while_loop", "regions", "flattened", "viewed", "successive", "scanned")),
    *[pointers(kernel, module="loops", BLOCK=64) for kernel in LOOPS],
    shared("locked", "lock_ptr"),
    shared("ticketed", "count_ptr"),
    tables(),
    listed(),
    pointers("turned", BLOCK=64),
    pointers("strided", divisible=(), scalars=("n", "stride"), BLOCK=128),
    pointers("exchanged", divisible=(), scalars=("n", "stride"), BLOCK=16),
    pointers("wide", BLOCK=128),
    pointers("small", ROWS=16, BLOCK=64),
    pointers("bytes", element="*i8", BLOCK=64),
    pointers("parts", BLOCK=64, PARTS=2),
    pointers("around", BLOCK=64),
    pointers("gathered", ROWS=128, BLOCK=64),
    pointers("nearest", BLOCK=64),
    pointers("halves", BLOCK=64),
    pointers("precise", BLOCK=64),
    pointers("held", BLOCK=64),
    pointers("looked_up", scalars=("n", "stride"), BLOCK=128),
    pointers("rounded", BLOCK=64),
    pointers("several", BLOCK=64),
    pointers("bounded", BLOCK=64),
    pointers("mixed", BLOCK=64),
    pointers("carried_on", BLOCK=64),
    pointers("curved", element="*fp32", BLOCK=64),
    *quantised.variants(Variant, tile),
    *serving.variants(Variant, tile),
]


def source_of(variant):
    """The kernel as Triton's compiler wants it."""
    module, function = variant.kernel.rsplit(".", 1)
    kernel = getattr(importlib.import_module(module), function)
    return ASTSource(
        kernel,
        signature=variant.arguments | dict.fromkeys(variant.constants, "constexpr"),
        constexprs=variant.constants,
        attrs={(kernel.arg_names.index(name),): [["tt.divisibility", 16]] for name in variant.divisible},
    )


def print_ttir(variant):
    """The TTIR of a variant, with locations relative to the repository's root."""
    backend = make_backend(TARGET)
    options = backend.parse_options({})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = source_of(variant).make_ir(
        TARGET, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    stages = {}
    backend.add_stages(stages, options, Language.TRITON)
    module = stages["ttir"](module, {})

    text = generic_form(module, context) if variant.form == "generic" else str(module)
    text = re.sub(r'loc\("([^"]+)":(?=\d)', lambda match: f'loc("{portable(match[1])}":', text)
    if variant.edit:
        old, new = variant.edit
        assert text.count(old) == 1, f"{variant.name}: {old!r} should stand in the TTIR once"
        text = text.replace(old, new)
    parse(text)
    return text


def generic_form(module, context):
    """Print a module in MLIR's generic form.

    Triton has no switch for it, but MLIR falls back to it for a module that does
    not verify, so spoil the module with an attribute and take the attribute out
    of the text again.
    """
    module.set_attr("llvm.data_layout", ir.builder(context).get_int32_attr(0))
    text, count = re.subn(r"(?m)^\}\) \{llvm\.data_layout = 0 : i32\} :", "}) :", str(module))
    assert count == 1, "the generic form of the module does not look as it should"
    return text


def portable(path):
    """A source path that is the same on every machine."""
    path = Path(path)
    for root, prefix in ((EXAMPLES, EXAMPLES.name), (Path(triton.__file__).parent, "triton")):
        for spelling in (path, path.resolve()):
            if spelling.is_relative_to(root):
                return f"{prefix}/{spelling.relative_to(root).as_posix()}"
    raise ValueError(f"a location outside the examples and Triton: {path}")


def parse(text):
    """Let Triton's own parser read the text, which verifies it too; raises when it cannot."""
    context = ir.context()
    ir.load_dialects(context)
    make_backend(TARGET).load_dialects(context)
    with tempfile.NamedTemporaryFile("w", suffix=".ttir") as file:
        file.write(text)
        file.flush()
        assert ir.parse_mlir_module(file.name, context).verify(), "Triton's verifier rejects the text"


def difference(variant, text):
    """A unified diff between the variant's file and the text; empty when they agree."""
    name = variant.path.relative_to(EXAMPLES.parent).as_posix()
    old = variant.path.read_text() if variant.path.exists() else ""
    return "".join(
        difflib.unified_diff(old.splitlines(True), text.splitlines(True), name, f"{name} (printed again)")
    )


def main():
    parser = argparse.ArgumentParser(description="Print the TTIR of the examples and fixtures.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to print; everything when left out")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file differs")
    parser.add_argument("--into", metavar="DIR", type=Path, help="write there, with whichever Triton is installed")
    parser.add_argument("--list", action="store_true", help="list the names and stop")
    parser.add_argument("--cubin", action="store_true", help="also compile each file down to a cubin")
    arguments = parser.parse_args()

    if not arguments.into and triton.__version__ != TRITON_VERSION:
        sys.exit(
            f"the TTIR files belong to triton {TRITON_VERSION}, but this is triton {triton.__version__}: "
            "pip install -r examples/requirements.txt"
        )
    by_name = {variant.name: variant for variant in VARIANTS}
    if unknown := [name for name in arguments.names if name not in by_name]:
        parser.error(f"no such name: {', '.join(unknown)}; --list shows them")
    chosen = [by_name[name] for name in arguments.names] or VARIANTS

    differs = False
    for variant in chosen:
        if arguments.list:
            print(variant.name)
            continue
        text = print_ttir(variant)
        if arguments.check:
            diff = difference(variant, text)
            differs |= bool(diff)
            sys.stdout.write(diff)
        else:
            path = variant.path if arguments.into is None else arguments.into / variant.path.relative_to(EXAMPLES)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote {path.relative_to(EXAMPLES.parent).as_posix() if arguments.into is None else path}")
        if arguments.cubin:
            compiled = triton.compile(
                str(variant.path), target=TARGET, options={"num_warps": 8, "num_stages": 2}
            )
            size, shared = len(compiled.asm["cubin"]), compiled.metadata.shared
            print(f"{variant.name}: a cubin of {size} bytes, {shared} bytes of shared memory")
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
