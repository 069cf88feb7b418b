#!/usr/bin/env python3
"""Kernels that between them use most operations of TTIR. `python kernels.py` prints each in its custom and its generic form.

Needs triton 3.6.0; no GPU and no torch. What the kernels compute has no meaning.
"""

import re
import sys
import tempfile
from pathlib import Path

import triton
import triton.language as tl
from triton._C.libtriton import ir, nvidia
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.language.extra import libdevice


@triton.jit
def persistent(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BN, BK], padding_option="nan")
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    columns = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * columns
    for t in tl.range(tl.program_id(0), tiles, 132, flatten=True, warp_specialize=True, num_stages=3):
        i = t // columns * BM
        j = t % columns * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(a_desc.load([i, k]), b_desc.load([j, k]).T, acc)
        c_desc.store([i, j], acc.to(tl.float16))
        c_desc.atomic_add([i, j], acc.to(tl.float16))


@triton.jit
def memory(x, y, z, desc, n, K: tl.constexpr):
    r = tl.arange(0, K)
    v = tl.load(x + r, mask=r < n, other=0.0, eviction_policy="evict_last")
    w = tl.load(x + r, mask=r < n, cache_modifier=".cg") + tl.load(x + r, volatile=True)
    tl.store(y + r, v.to(tl.float8e4nv), cache_modifier=".wt")
    tl.store(x + r, w, mask=r < n, eviction_policy="evict_first")
    tl.atomic_cas(z, 0, 1, sem="acquire", scope="sys")
    tl.atomic_max(z, 5)
    tl.atomic_add(x + r, v, mask=r < n, sem="relaxed")
    g = desc.gather(tl.arange(0, 32), 0)
    desc.scatter(g, tl.arange(0, 32), 8)
    address = (x + r).to(tl.int64, bitcast=True)
    tl.store(z + address.to(tl.int32), 1)
    for i in tl.range(n, 0, -1):
        tl.store(x + i, float("nan"))
    tl.store(x, tl.where(n > 3, float("-inf"), -0.0))
    tl.store(x + tl.num_programs(1), 2.5e-9)


@triton.jit
def product_and_sum(a, b):
    return a * b, a + b


@triton.jit
def shapes(x, z, n, K: tl.constexpr):
    r = tl.arange(0, K)
    v = tl.load(x + r)
    scanned = tl.cumsum(v, 0)
    largest, where = tl.max(v, 0, return_indices=True)
    a, b = tl.split(tl.reshape(scanned, (K // 2, 2)))
    tl.store(x + r, tl.ravel(tl.join(a, b)))
    p, q = tl.map_elementwise(product_and_sum, v, scanned)
    tl.store(x + tl.arange(0, 2 * K), tl.cat(p, q, can_reorder=True))
    tl.store(x + r, tl.gather(scanned, (where + r) % K, 0) + largest)
    tl.store(z + tl.arange(0, 128), tl.histogram(r, 128))
    square = tl.reshape(v, (16, K // 16))
    o = tl.dot(square, tl.trans(square), input_precision="ieee", max_num_imprecise_acc=32)
    tl.store(x + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :], o)
    tl.debug_barrier()
    tl.device_assert(n > 3, 'n "quoted" \n too small')
    tl.device_print("n is", n, hex=True)


@triton.jit
def arithmetic(x, y, z, n, K: tl.constexpr):
    tl.assume(n > 0)
    r = tl.arange(0, K)
    v = tl.load(x + r)
    e = tl.inline_asm_elementwise(
        "ex2.approx.ftz.f32 $0, $1;", "=r,r", [v], dtype=tl.float32, is_pure=True, pack=1
    )
    e += tl.math.div_rn(v, e) + tl.math.sqrt_rn(v) + tl.math.erf(v) + libdevice.tanh(v) + tl.sigmoid(v)
    e += tl.clamp(v, 0.0, 1.0) + tl.math.fma(v, v, v) + tl.where(r < n, v, float("-inf"))
    tl.store(y + r, v.to(tl.float8e5, fp_downcast_rounding="rtz").to(tl.float16))
    tl.store(z + r, v.to(tl.bfloat16).to(tl.int16, bitcast=True).to(tl.int32) + tl.umulhi(r, r))
    tl.store(z + r, (tl.rand(3, r) + e).to(tl.int32) // 3 % 5 << 2 >> 1)


@triton.jit
def scaled(a, a_scale, b, b_scale, c, K: tl.constexpr):
    r = tl.arange(0, K)
    s = tl.arange(0, K // 32)
    x = tl.load(a + r[:, None] * K + r[None, :])
    y = tl.load(b + r[:, None] * K + r[None, :])
    xs = tl.load(a_scale + r[:, None] * (K // 32) + s[None, :])
    ys = tl.load(b_scale + r[:, None] * (K // 32) + s[None, :])
    o = tl.dot_scaled(x, xs, "e4m3", y, ys, "e5m2")
    o = tl.dot_scaled(x, None, "e4m3", y, ys, "e5m2", acc=o)
    tl.store(c + r[:, None] * K + r[None, :], o)


@triton.jit(noinline=True)
def sum_and_difference(x, y):
    return x + y, x - y


@triton.jit
def control(x, n):
    a, b = sum_and_difference(n, 3)
    total = a * b
    if n > 3:
        if n == 7:
            return
        total = 5
    for i in range(n):
        if i == 4:
            total += 2
        total += i
        if i == 9:
            tl.store(x + i, i)
    while total < 100:
        total *= 2
    tl.store(x, total)


def main():
    def tile(rows, columns):
        return f"tensordesc<fp16[{rows}, {columns}]>"

    halves = {name: "*fp16" for name in ("a_ptr", "b_ptr", "c_ptr")}
    bytes_ = {name: "*u8" for name in ("a", "a_scale", "b", "b_scale")}
    sizes = {name: "i32" for name in "MNK"}
    show(persistent, halves | sizes, {"BM": 128, "BN": 128, "BK": 64})
    show(memory, {"x": "*fp32", "y": "*fp8e4nv", "z": "*i32", "desc": tile(1, 64), "n": "i32"}, {"K": 256})
    show(shapes, {"x": "*fp32", "z": "*i32", "n": "i32"}, {"K": 256})
    show(arithmetic, {"x": "*fp32", "y": "*fp16", "z": "*i32", "n": "i32"}, {"K": 256})
    show(scaled, bytes_ | {"c": "*fp32"}, {"K": 128})
    show(control, {"x": "*i32", "n": "i32"}, {})


def show(kernel, arguments, constants):
    source = ASTSource(
        fn=kernel,
        signature=arguments | {name: "constexpr" for name in constants},
        constexprs=constants,
        attrs={(index,): [["tt.divisibility", 16]] for index, kind in enumerate(arguments.values()) if kind[0] == "*"},
    )
    text = triton.compile(source, target=GPUTarget("cuda", 100, 32), options={"debug": kernel is shapes}).asm["ttir"]
    folder = Path(__file__).resolve().parent
    text = text.replace(f"{folder}/", "").replace(f"{Path(triton.__file__).parent.parent}/", "")
    name = kernel.fn.__name__
    (folder / f"{name}.ttir").write_text(text)
    (folder / f"{name}.generic.ttir").write_text(generic(text))
    print(name)


def generic(text):
    """MLIR prints a module in the generic form if it is not valid, as with this attribute, which is then taken out."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.ttir"
        path.write_text(text)
        context = ir.context()
        ir.load_dialects(context)
        nvidia.load_dialects(context)
        module = ir.parse_mlir_module(str(path), context)
        module.context = context
        custom = module.str_nodebug()
        module.get_function(module.get_entry_func_name()).set_arg_attr(0, "llvm.noalias", 77)
        printed, count = re.subn(r"llvm\.noalias = 77 : i32(, )?", "", str(module).replace(str(path), "kernel.ttir"))
        assert count == 1 and '"builtin.module"' in printed
        path.write_text(printed)
        again = ir.parse_mlir_module(str(path), context)
        again.context = context
        assert again.str_nodebug() == custom, "the generic form says something else"
        return printed


if __name__ == "__main__":
    sys.exit(main())
