"""Compiles the kernel of this folder to machine code and says what became of its schedule.

Needs NVRTC and CUDA's headers as wheels (torch brings them: cuda-bindings, nvidia-cuda-nvrtc, nvidia-cuda-runtime), but
no GPU, no Triton and no compiler of its own. The order of instructions is reported where there is an nvdisasm.

    python assemble.py [--json]

`--json` prints the report as JSON. Exit status 0 if it compiled, whatever was found; 1 if not.
"""

import argparse
import base64
import collections
import hashlib
import importlib.util
import json
import os
import re
import resource
import shutil
import sys
import tempfile
from pathlib import Path

PROGRAMS = ("programs_x", "programs_y", "programs_z")
REQUIRED = ("name", "function", "architecture", "parameters", "arguments", "grid", "threads", "shared_memory")
SOURCES = ("kernel.cu", "twill.cuh")
OTHER_PRIMITIVES = ("twill_scratch.cuh", "twill_tcgen05.cuh", "twill_cluster.cuh", "twill_wave_sync.cuh")
INSTALL = "pip install 'twill-gpu[cuda]', or cuda-bindings nvidia-cuda-nvrtc nvidia-cuda-runtime"
OPTIONS = ("-std=c++17", "-default-device", "--ptxas-options=-v")
KEPT = "kernel.cubin.json"
"""Machine code that another process has made of the folder's sources."""

Target = collections.namedtuple("Target", "arch")
Target.__doc__ = "What to compile for; compute capability 9.0 is 90."


def next_to(name):
    """Another file of this folder as a module."""
    spec = importlib.util.spec_from_file_location(f"twill_{name}", Path(__file__).resolve().parent / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


machine_code = next_to("machine_code")
KernelError = machine_code.KernelError


class Compiled:
    """A kernel's machine code, and how it is launched. `asm` holds its PTX and its cubin; `version` is that of NVRTC."""

    def __init__(self, kernel, ptx, cubin, log, version):
        self.version = version
        self.name, self.threads, self.shared = kernel["function"], kernel["threads"], kernel["shared_memory"]
        self.asm, self.log = {"ptx": ptx, "cubin": cubin}, log
        elements = {p["name"]: p["element"] for p in kernel["parameters"] if p["kind"] == "scalar"}
        # Of each argument: a number's type; None for a pointer or a descriptor.
        self.kinds = ["i32" if name in PROGRAMS else elements.get(name) for name in kernel["arguments"]]
        used = re.search(r"Used (\d+) registers", log)
        # NVRTC says nothing of what it had compiled before; kernel.json does, if the kernel was assembled then.
        known = kernel.get("assembly")
        self.n_regs = known["registers"] if known else None
        self.n_spills = known["spill_stores"] + known["spill_loads"] if known else None
        if used:
            self.n_regs = int(used[1])
            self.n_spills = sum(int(count) for count in re.findall(r"(\d+) bytes spill", log))


def read_kernel(folder):
    """kernel.json, and the sources by their names."""
    folder = Path(folder).resolve()
    try:
        kernel = json.loads((folder / "kernel.json").read_text())
        sources = {name: (folder / name).read_text() for name in SOURCES}
        sources |= {name: (folder / name).read_text() for name in OTHER_PRIMITIVES if (folder / name).exists()}
        sources |= {name: (folder / name).read_text() for name in [KEPT] if (folder / name).exists()}
    except (OSError, ValueError) as error:
        raise KernelError(f"{folder}: {error}") from None
    if (kernel.get("format"), kernel.get("version"), kernel.get("language")) != ("twill-kernel", 1, "cuda"):
        raise KernelError(
            f"{folder / 'kernel.json'} is no twill-kernel of version 1 in CUDA: write the folder again with this twill"
        )
    absent = [field for field in REQUIRED if field not in kernel]
    if absent:
        raise KernelError(f"{folder / 'kernel.json'} lacks {', '.join(absent)}")
    return kernel, sources


def target(kernel):
    """What to compile for."""
    return Target(int(re.search(r"\d+", kernel["architecture"])[0]))


def descriptor_layout(kernel, argument, element, shape):
    """How TMA copies the tiles of a descriptor argument: extents of a box, and bytes of a swizzled line."""
    blocks = (block for parameter in kernel["parameters"] for block in parameter.get("blocks", ()))
    block = next(block for block in blocks if block["argument"] == argument)
    return element, tuple(block["box"]), block["swizzle"]


def headers():
    """CUDA's own headers, as wheels or a toolkit install them."""
    for place in sys.path:
        for found in (Path(place) / "nvidia" / "cu13" / "include", Path(place) / "nvidia" / "cuda_runtime" / "include"):
            if (found / "cuda_fp16.h").is_file():
                return found
    for toolkit in (os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if toolkit and (Path(toolkit) / "include" / "cuda_fp16.h").is_file():
            return Path(toolkit) / "include"
    raise ModuleNotFoundError(f"CUDA's headers are not there: {INSTALL}")


def checked(nvrtc, error):
    """Raises what a call of NVRTC failed with."""
    if int(error) != 0:
        raise KernelError(f"NVRTC: {nvrtc.nvrtcGetErrorString(error)[1].decode()}")


def text_of(nvrtc, program, size, get):
    """Bytes that NVRTC made."""
    error, count = size(program)
    checked(nvrtc, error)
    room = bytes(count)
    checked(nvrtc, get(program, room)[0])
    return room


def digest_of(kernel, sources):
    """Of all that machine code is made of, but for NVRTC."""
    texts = [sources[name] for name in sorted(sources) if name != KEPT]
    return hashlib.sha256("\0".join([*texts, *OPTIONS, kernel["architecture"]]).encode()).hexdigest()


def keep(folder, kernel, sources, compiled):
    """Keeps machine code in a folder, for processes that compile nothing."""
    cubin = base64.b64encode(compiled.asm["cubin"]).decode()
    kept = {"digest": digest_of(kernel, sources), "version": compiled.version, "log": compiled.log, "cubin": cubin}
    (Path(folder) / KEPT).write_text(json.dumps(kept))


def kept(kernel, sources):
    """The machine code that is kept in the folder of these sources; None where there is none of them."""
    try:
        made = json.loads(sources[KEPT])
        if made["digest"] == digest_of(kernel, sources):
            return Compiled(kernel, "", base64.b64decode(made["cubin"]), made["log"], made["version"])
    except (KeyError, TypeError, ValueError):
        pass
    return None


def is_kept(kernel, sources):
    """Whether no compiler has to run."""
    return kept(kernel, sources) is not None


def build(kernel, sources, inline_barriers=True, anew=False):
    """The kernel compiled for all devices of its architecture, and that nothing follows its arguments.

    `anew`: neither what is kept nor from NVRTC's cache, which keeps no log.
    """
    if not anew and (found := kept(kernel, sources)) is not None:
        return found, None
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except Exception as error:  # the bindings are not there, or not what they are of
        raise ModuleNotFoundError(f"{error}: {INSTALL}") from error
    included = [name for name in sources if name not in ("kernel.cu", KEPT)]
    texts, names = [sources[name].encode() for name in included], [name.encode() for name in included]
    error, program = nvrtc.nvrtcCreateProgram(
        sources["kernel.cu"].encode(), b"kernel.cu", len(included), texts, names
    )
    checked(nvrtc, error)
    options = [*OPTIONS, f"-arch={kernel['architecture']}", f"-I{headers()}"]
    if anew:
        options.append("-no-cache")
    (error,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    log = text_of(nvrtc, program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).decode().rstrip("\0")
    if int(error) != 0:
        raise KernelError(f"NVRTC refused kernel.cu:\n{log}")
    ptx = text_of(nvrtc, program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX).decode().rstrip("\0")
    cubin = text_of(nvrtc, program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
    nvrtc.nvrtcDestroyProgram(program)
    error, *version = nvrtc.nvrtcVersion()
    checked(nvrtc, error)
    return Compiled(kernel, ptx, cubin, log, version), None


def assembler(kernel, compiled):
    """NVRTC, which assembles too, in words: its version, and whether that is an old one."""
    return machine_code.assembler("NVRTC", compiled.version, target(kernel).arch)


# ------------------------------------------------------------------------------------------------- machine code
def disassembler():
    """An nvdisasm: in the PATH, or Triton's; None if there is none."""
    found = shutil.which("nvdisasm")
    if found is None and importlib.util.find_spec("triton"):
        import triton

        found = triton.knobs.nvidia.nvdisasm.path
    return found


def groups_of(code, kernel):
    """Warp groups in machine code: each begins where it sets its registers."""
    starts = [number for number, block in enumerate(code.blocks) if machine_code.set_registers(block)]
    loops, groups = list(machine_code.main_loops(code)), []
    left = [(name, -(-kernel["registers"][name] // 8) * 8) for name in kernel.get("groups", [])]
    for number, start in enumerate(starts):
        registers = machine_code.set_registers(code.blocks[start])[0]
        # ptxas may change their order, but not their registers.
        own = next((one for one in left if one[1] == registers), (f"group_{number}", registers))
        left = [one for one in left if one != own]
        blocks = code.dominated(start)
        lines = code.lines(blocks)
        groups.append(
            {
                "name": own[0],
                "registers": registers,
                "local_loads": sum("LDL" in line for line in lines),
                "local_stores": sum("STL" in line for line in lines),
                "loops": [machine_code.describe(body) for header, body in loops if header in blocks],
            }
        )
    return groups


def tensor_columns(ptx):
    """Columns of tensor memory that the kernel takes."""
    taken = re.search(r"tcgen05\.alloc\.\S+ \[[^]]+\], (\d+)", ptx)
    return int(taken[1]) if taken else 0


def assemble(folder, listing=None):
    """Compiles the kernel of a folder and reports on it; writes its machine code as text to a file, where one is named."""
    kernel, sources = read_kernel(folder)
    compiled, _ = build(kernel, sources, anew=KEPT in sources)
    if "registers" not in compiled.log:
        # It came from NVRTC's cache.
        compiled, _ = build(kernel, sources, anew=True)
    groups, nvdisasm = [], disassembler()
    if nvdisasm is not None:
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(compiled.asm["cubin"])
            file.flush()
            sass = machine_code.disassemble(nvdisasm, file.name)
        if listing:
            Path(listing).write_text(sass)
        groups = groups_of(machine_code.Code(sass, kernel["function"]), kernel)
    ptx = compiled.asm["ptx"]
    return machine_code.report_of(
        kernel,
        ptx,
        compiled.log,
        groups,
        assembler=assembler(kernel, compiled),
        shared_memory=kernel["shared_memory"],
        tensor_memory=tensor_columns(ptx),
        warps=kernel["threads"] // 32,
        barriers_at=0,
    )


def main():
    parser = argparse.ArgumentParser(description="Compiles the kernel of this folder and reports on its machine code.")
    parser.add_argument("folder", nargs="?", default=Path(__file__).parent, help="another folder")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--sass", metavar="FILE", help="write the machine code as text, for twill lint")
    parser.add_argument("--cubin", metavar="FILE", help="write the machine code, for loaders that compile nothing")
    parser.add_argument("--seconds", type=int, help="of a processor, after which this ends, and what it starts")
    arguments = parser.parse_args()
    if arguments.seconds:
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (arguments.seconds, most))
    try:
        if arguments.cubin:
            Path(arguments.cubin).write_bytes(build(*read_kernel(arguments.folder))[0].asm["cubin"])
            return
        report = assemble(arguments.folder, arguments.sass)
    except KernelError as error:
        sys.exit(f"{error}")
    if arguments.json:
        print(json.dumps(report, indent=1))
    else:
        machine_code.print_report(report)


if __name__ == "__main__":
    main()
