"""Compiles the kernel of this folder to machine code and says what became of its schedule.

Needs Triton 3.6 to 3.9, but no GPU and no torch.

    python assemble.py [--json] [--bare] [--sass FILE]

`--json` prints the report as JSON, `--bare` leaves the barriers to Gluon, `--sass` writes the machine code as text. Exit status 0 if it
compiled, whatever was found; 1 if not.
"""

import argparse
import hashlib
import importlib.util
import json
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import triton
from triton.backends.compiler import GPUTarget
from triton._C.libtriton import get_cache_invalidating_env_vars, ir
from triton.compiler.compiler import CompiledKernel, make_backend
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.runtime.cache import get_cache_key, get_cache_manager

GLUON_BARRIERS = -1
PROGRAMS = ("programs_x", "programs_y", "programs_z")
REQUIRED = ("name", "function", "architecture", "num_warps", "parameters", "arguments", "barriers_at", "grid")


def next_to(name):
    """Another file of this folder as a module."""
    spec = importlib.util.spec_from_file_location(f"twill_{name}", Path(__file__).resolve().parent / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


machine_code, ptxas = next_to("machine_code"), next_to("ptxas")
KernelError = machine_code.KernelError


# ------------------------------------------------------------------------------------------------- the kernel of a folder
def read_kernel(folder):
    """kernel.json and the Gluon function of kernel.py, checked against each other."""
    folder = Path(folder).resolve()
    try:
        kernel = json.loads((folder / "kernel.json").read_text())
    except (OSError, ValueError) as error:
        raise KernelError(f"{folder / 'kernel.json'}: {error}") from None
    if (kernel.get("format"), kernel.get("version")) != ("twill-kernel", 1):
        raise KernelError(
            f"{folder / 'kernel.json'} is no twill-kernel of version 1: write the folder again with this twill"
        )
    absent = [field for field in REQUIRED if field not in kernel]
    if absent:
        raise KernelError(f"{folder / 'kernel.json'} lacks {', '.join(absent)}")
    # A name of its own for each folder: kernels live side by side in one process.
    name = "twill_kernel_" + re.sub(r"\W", "_", str(folder))
    spec = importlib.util.spec_from_file_location(name, folder / "kernel.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        function = getattr(module, kernel["function"])
    except Exception as error:
        del sys.modules[name]
        raise KernelError(f"{folder / 'kernel.py'}: {type(error).__name__}: {error}") from error
    expected = kernel["arguments"] + ["BARRIERS_AT"]
    if list(function.arg_names) != expected:
        raise KernelError(
            f"kernel.py and kernel.json disagree: the function takes {function.arg_names}, the arguments are {expected}"
        )
    return kernel, function


def target(kernel):
    """What to compile for; compute capability 9.0 is 90."""
    return GPUTarget("cuda", int(re.search(r"\d+", kernel["architecture"])[0]), 32)


def descriptor_layout(kernel, argument, element, shape):
    """Layout in shared memory of the tiles of a descriptor argument."""
    given = kernel.get("descriptor_layouts", {}).get(argument)
    if given is None:
        return gl.NVMMASharedLayout.get_default_for(list(shape), gl.dtype(re.sub(r"^([iu])(?=\d)", r"\1nt", element).replace("unt", "uint")))
    return gl.NVMMASharedLayout(**given)


def argument_types(kernel):
    """Triton's type of each run-time argument, and which are divisible by 16."""
    types, divisible = {name: "i32" for name in PROGRAMS}, set()
    for parameter in kernel["parameters"]:
        name, element = parameter["name"], parameter["element"]
        for block in parameter.get("blocks", ()):
            layout = descriptor_layout(kernel, block["argument"], element, block["shape"])
            types[block["argument"]] = f"tensordesc<{element}{list(block['shape'])},{layout!r}>"
        if parameter["kind"] != "descriptor":
            types[name] = f"*{element}" if parameter["kind"] == "pointer" else element
            if parameter.get("divisible_by_16"):
                divisible.add(name)
    return types, divisible


def source(kernel, function, barriers_at):
    """What Triton compiles, with the barriers at this offset of shared memory."""
    types, divisible = argument_types(kernel)
    missing = [name for name in kernel["arguments"] if name not in types]
    if missing:
        raise KernelError(f"kernel.json: no parameter stands for the arguments {missing}")
    signature = {**{name: types[name] for name in kernel["arguments"]}, "BARRIERS_AT": "constexpr"}
    attributes = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(kernel["arguments"]) if name in divisible}
    return GluonASTSource(function, signature, {"BARRIERS_AT": barriers_at}, attributes)


# ------------------------------------------------------------------------------------------------- barriers
def barriers_in(ptx):
    """Offset in shared memory of the array of all mbarriers, from where Gluon initialises them; -1 if they form none."""
    base, found = {"global_smem": 0}, []
    for line in ptx.splitlines():
        if m := re.search(r"mov\.[bu]32\s+(%r\d+), global_smem;", line):
            base[m[1]] = 0
        elif m := re.search(r"add\.s32\s+(%r\d+), (%r\d+), (-?\d+);", line):
            if m[2] in base:
                base[m[1]] = base[m[2]] + int(m[3])
        elif "mbarrier.init" in line and not line.startswith("\t{"):  # where inline PTX expects them proves nothing
            m = re.search(r"\[(%r\d+|global_smem)(?:\+(\d+))?\]", line)
            if not m or m[1] not in base:
                return GLUON_BARRIERS
            found.append(base[m[1]] + int(m[2] or 0))
    if not found or sorted(found) != [found[0] + 8 * i for i in range(len(found))]:
        return GLUON_BARRIERS
    return found[0]


def place_barriers(build, hint=GLUON_BARRIERS):
    """A compiled kernel, and the BARRIERS_AT it was compiled with; `build` compiles with one: the result and its PTX.

    Gluon does not tell where it puts a barrier, so the offset is read from the code and compiled in. Code that looks for
    its barriers elsewhere would wait for ever: only an offset that its own code confirms is used, else Gluon's barriers.
    """
    bare, at = None, hint
    for _ in range(3):
        if at < 0:
            bare = build(GLUON_BARRIERS)
            at = barriers_in(bare[1])
            if at < 0:
                return bare[0], GLUON_BARRIERS
        built, ptx = build(at)
        found = barriers_in(ptx)
        if found == at:
            return built, at
        at = found
    return (bare or build(GLUON_BARRIERS))[0], GLUON_BARRIERS


# ------------------------------------------------------------------------------------------------- compiling
def options_of(kernel):
    """Triton's options. Where several CTAs share a multiprocessor, each has a part of its registers.

    Multiplies and adds are contracted as by default, of which Triton 3.9 warns where it is not told. Triton would write checks
    of every sum of integers, which count in debug mode alone, and take a fourth of the time.
    """
    return {
        "num_warps": kernel["num_warps"],
        "maxnreg": kernel.get("entry_registers"),
        "launch_pdl": kernel.get("dependent_launch", False),
        "enable_fp_fusion": triton.knobs.language.default_fp_fusion,
        "sanitize_overflow": False,
        "ptx_version": ptxas.ptx_version(chosen_ptxas(kernel), target(kernel).arch),
    }


def parsed_options(kernel, text):
    """Triton's back end, and its options."""
    backend = make_backend(target(kernel))
    return backend, backend.parse_options({**options_of(kernel), **text.parse_options()})


def lowered(kernel, text, metadata):
    """The stages of `triton.compile` up to PTX: the name and the module of each. It adds to the metadata."""
    backend, options = parsed_options(kernel, text)
    context, stages = ir.context(), {}
    ir.load_dialects(context)
    backend.load_dialects(context)
    backend.add_stages(stages, options, text.language)
    module = text.make_ir(
        target(kernel), options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    for name in ("ttgir", "llir", "ptx"):
        module = stages[name](module, metadata)
        yield name, module


def assembled_by(chosen, ptx, options, architecture):
    """Machine code, and what ptxas said."""
    with tempfile.TemporaryDirectory() as folder:
        text, cubin = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        text.write_text(ptx)
        command = [chosen.path, *ptxas.flags(chosen, options, architecture), str(text), "-o", str(cubin)]
        run = subprocess.run(command, capture_output=True, text=True)
        log = run.stdout + run.stderr
        if run.returncode != 0:
            raise KernelError(f"ptxas refused the kernel ({run.returncode}):\n{log}")
        return cubin.read_bytes(), log


class Kept:
    """A kernel's place in Triton's cache, which also has what ptxas said. Its key has the version of ptxas.

    Where nothing can be written there, nothing is kept.
    """

    def __init__(self, chosen, kernel, text):
        self.chosen, self.kernel, self.text = chosen, kernel, text
        _, self.options = parsed_options(kernel, text)
        self.variables = get_cache_invalidating_env_vars()
        # The back end's own hash has the version of the ptxas that a variable names.
        back_end = SimpleNamespace(hash=lambda: str(target(kernel).arch))
        key = get_cache_key(text, back_end, self.options, env_vars=self.variables)
        self.digest = hashlib.sha256(f"{key}-{machine_code.named('ptxas', chosen.version)}".encode()).hexdigest()
        self.name = text.name[:150]
        try:
            self.cache = get_cache_manager(self.digest)
        except OSError:
            self.cache = None

    def find(self):
        """The kernel as Triton launches it, and what ptxas said; None if it is not there."""
        files = self.cache and self.cache.get_group(f"{self.name}.json") or {}
        if f"{self.name}.log" not in files or triton.knobs.compilation.always_compile:
            return None
        return CompiledKernel(self.text, files, self.digest), Path(files[f"{self.name}.log"]).read_text()

    def is_whole(self):
        """Whether all of it is there."""
        files = self.cache and self.cache.get_group(f"{self.name}.json") or {}
        return f"{self.name}.log" in files and all(Path(path).is_file() for path in files.values())

    def lower(self):
        """Its forms by name up to PTX, and Triton's metadata."""
        of_kernel = {"hash": self.digest, "target": target(self.kernel), **vars(self.options), **self.variables}
        metadata = {**of_kernel, "triton_version": triton.__version__}
        return {name: str(module) for name, module in lowered(self.kernel, self.text, metadata)}, metadata

    def assemble(self, forms, metadata):
        """Keeps what ptxas makes of it. The same as `find`."""
        cubin, log = assembled_by(self.chosen, forms["ptx"], self.options, self.kernel["architecture"])
        made = {**forms, "cubin": cubin, "log": log, "json": json.dumps(metadata, default=vars)}
        named = {f"{self.name}.{kind}": content for kind, content in made.items()}
        if self.cache:
            try:
                put = self.cache.put
                files = {name: put(content, name, isinstance(content, bytes)) for name, content in named.items()}
                self.cache.put_group(f"{self.name}.json", files)
                return CompiledKernel(self.text, files, self.digest), log
            except OSError:
                pass  # the disk is full, or somebody else may write there
        with tempfile.TemporaryDirectory() as folder:
            files = {name: str(Path(folder, name)) for name in named}
            for name, content in named.items():
                Path(files[name]).write_bytes(content if isinstance(content, bytes) else content.encode())
            return CompiledKernel(self.text, files, self.digest), log


def compiled(kernel, function, barriers_at):
    """The kernel with the barriers at this offset, or as `place_barriers` finds one where it is None: as Triton launches it,
    what ptxas said, and the offset."""
    chosen = chosen_ptxas(kernel)

    def attempt(at):
        kept = Kept(chosen, kernel, source(kernel, function, at))
        if found := kept.find():
            return (lambda: found), found[0].asm["ptx"]
        forms, metadata = kept.lower()
        return (lambda: kept.assemble(forms, metadata)), forms["ptx"]

    if barriers_at is None:
        finish, barriers_at = place_barriers(attempt, kernel["barriers_at"])
    else:
        finish, _ = attempt(barriers_at)
    return *finish(), barriers_at


def chosen_ptxas(kernel):
    """The ptxas of this kernel."""
    return ptxas.chosen(target(kernel).arch, machine_code.is_sound)


def keep(folder, kernel, function, compiled):
    """Machine code is in Triton's cache: nothing else keeps it."""


def is_kept(kernel, function):
    """Whether no compiler has to run."""
    return Kept(chosen_ptxas(kernel), kernel, source(kernel, function, kernel["barriers_at"])).is_whole()


def assembler(kernel, compiled=None):
    """The same in words: its version, and whether that is an old one."""
    return machine_code.assembler("ptxas", chosen_ptxas(kernel).version, target(kernel).arch)


def build(kernel, function, inline_barriers=True):
    """The kernel as Triton launches it, and the BARRIERS_AT that its function takes after its other arguments."""
    built, _, at = compiled(kernel, function, None if inline_barriers else GLUON_BARRIERS)
    return built, at


# ------------------------------------------------------------------------------------------------- the report
def assemble(folder, bare=False, listing=None):
    """Compiles the kernel of a folder and reports on it; writes its machine code as text to a file, where one is named."""
    kernel, function = read_kernel(folder)
    built, log, at = compiled(kernel, function, GLUON_BARRIERS if bare else None)
    metadata = built.metadata
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(built.asm["cubin"])
        file.flush()
        sass = machine_code.disassemble(triton.knobs.nvidia.nvdisasm.path, file.name)
    if listing:
        Path(listing).write_text(sass)

    return machine_code.report_of(
        kernel,
        built.asm["ptx"],
        log,
        machine_code.describe_groups(machine_code.Code(sass, metadata.name), kernel),
        assembler=assembler(kernel),
        shared_memory=metadata.shared,
        tensor_memory=getattr(metadata, "tmem_size", None) or 0,
        warps=metadata.num_warps,
        barriers_at=at,
    )


def main():
    parser = argparse.ArgumentParser(description="Compiles the kernel of this folder and reports on its machine code.")
    parser.add_argument("folder", nargs="?", default=Path(__file__).parent, help="another folder")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--sass", metavar="FILE", help="write the machine code as text, for twill lint")
    parser.add_argument("--bare", action="store_true", help="leave the barriers to Gluon")
    parser.add_argument("--seconds", type=int, help="of a processor, after which this ends, and what it starts")
    arguments = parser.parse_args()
    if arguments.seconds:
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (arguments.seconds, most))
    try:
        report = assemble(arguments.folder, arguments.bare, arguments.sass)
    except KernelError as error:
        sys.exit(f"{error}")
    except Exception as error:
        while error.__cause__ is not None and isinstance(error.__cause__, triton.CompilationError):
            error = error.__cause__  # the place inside the functions that are called
        sys.exit(f"{Path(arguments.folder) / 'kernel.py'} does not compile: {type(error).__name__}: {error}")
    if arguments.json:
        print(json.dumps(report, indent=1))
    else:
        machine_code.print_report(report)


if __name__ == "__main__":
    main()
