"""What Triton's compiler allocates for a generated kernel, without its translation to machine code."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def assembler(folder: Path):
    """The assembler of a kernel's folder as a module; that of the first, as all are the same."""
    if "twill_assemble" not in sys.modules:
        spec = importlib.util.spec_from_file_location("twill_assemble", folder / "assemble.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules["twill_assemble"] = module
        spec.loader.exec_module(module)
    return sys.modules["twill_assemble"]


def allocated(folder: Path, whole: bool = False) -> dict[str, int]:
    """Bytes of shared memory and columns of tensor memory of the kernel in a folder.

    The passes of Triton's `make_llir` up to the one that allocates; `whole` runs the stage to its end instead.
    """
    from triton._C.libtriton import ir, nvidia, passes
    from triton.backends.nvidia.compiler import get_ptx_version_from_options
    from triton.compiler.compiler import make_backend

    twill = assembler(folder)
    kernel, function = twill.read_kernel(folder)
    target = twill.target(kernel)
    text = twill.source(kernel, function, twill.GLUON_BARRIERS)
    backend = make_backend(target)
    options = backend.parse_options({"num_warps": kernel["num_warps"], **text.parse_options()})
    context, stages, metadata = ir.context(), {}, {}
    ir.load_dialects(context)
    backend.load_dialects(context)
    backend.add_stages(stages, options, text.language)
    module = text.make_ir(
        target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    module = stages["ttgir"](module, metadata)
    if whole:
        stages["llir"](module, metadata)
        return {"shared": metadata["shared"], "tensor": metadata["tmem_size"]}
    manager = ir.pass_manager(context)
    passes.ttgpuir.add_combine_tensor_select_and_if(manager)
    passes.ttgpuir.add_allocate_warp_groups(manager)
    passes.convert.add_scf_to_cf(manager)
    passes.gluon.add_inliner(manager)
    ptx = get_ptx_version_from_options(options, target.arch)
    nvidia.passes.ttgpuir.add_allocate_shared_memory_nv(manager, target.arch, ptx)
    nvidia.passes.ttnvgpuir.add_allocate_tensor_memory(manager)
    manager.run(module, "allocate")
    return {
        "shared": module.get_int_attr("ttg.shared"),
        "tensor": module.get_int_attr("ttg.tensor_memory_size") or 0,
    }
