"""The instruction `wgmma` as C++: its text has the registers of its result one by one."""

from __future__ import annotations

DEPTH = {"f16": 16, "e4m3": 32}
"""Elements along the depth of an instruction, by their type."""


def struct_name(kind: str, columns: int, left_in_registers: bool) -> str:
    """Name of the struct of an instruction."""
    return f"wgmma_{kind}_{columns}_{'registers' if left_in_registers else 'shared'}"


def struct(kind: str, columns: int, left_in_registers: bool) -> str:
    """m64nNk16 or m64nNk32, which adds to sums of f32; the right operand is in shared memory, along its depth."""
    count = columns // 2
    sums = ", ".join(f"%{register}" for register in range(count))
    outputs = ", ".join(f'"+f"(d[{register}])' for register in range(count))
    if left_in_registers:
        left = "{" + ", ".join(f"%{count + register}" for register in range(4)) + "}"
        inputs = ", ".join(f'"r"(a[{register}])' for register in range(4))
        parameter, right = "const u32 *a", count + 4
    else:
        left, inputs, parameter, right = f"%{count}", '"l"(a)', "u64 a", count + 1
    # Only 16-bit types have bits for transposed operands, and the left one only in shared memory.
    transposed = "" if kind != "f16" else ", 0" if left_in_registers else ", 0, 0"
    shape = f"m64n{columns}k{DEPTH[kind]}.f32.{kind}.{kind}"
    text = f"wgmma.mma_async.sync.aligned.{shape} {{{sums}}}, {left}, %{right}, p, 1, 1{transposed};"
    return (
        f"struct {struct_name(kind, columns, left_in_registers)} {{\n"
        f"  static constexpr bool left_in_registers = {str(left_in_registers).lower()};\n"
        f"  TWILL static void issue(float *d, {parameter}, u64 b) {{\n"
        f'    asm volatile("{{ .reg .pred p; setp.ne.b32 p, 1, 0; {text} }}"\n'
        f'                 : {outputs} : {inputs}, "l"(b));\n  }}\n}};\n'
    )
