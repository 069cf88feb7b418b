"""Compares the machine code of kernels that two builds of Twill generate.

    python compare.py BASE HEAD [--inputs FILE ...] [--variant "FLAGS" ...] [--renamed=NEW=OLD ...]

BASE and HEAD are `twill` binaries. Each generates the kernel of every input in both languages; where the sources differ,
both are compiled, without a GPU. They are the same if the instructions, shared memory and constants of their cubins are, or
their PTX without names and lines: ptxas may allocate other registers for the same PTX when it runs again. Exit status 0 if
all are the same.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = {"gluon": ("kernel.py",), "cuda": ("kernel.cu", "twill.cuh")}
# Besides the default options: another target, naive schedules, and what the tuner never chooses by itself.
VARIANTS = (
    "",
    "--machine b200",
    "--schedule no-swp",
    "--persistent off --ring-depth 2",
    "--pingpong on --operands-in-registers on",
    "--emit cuda --cluster 2",
    "--emit cuda --wave-sync",
    "--emit cuda --trace",
)
SECONDS = 300


def functions(cubin):
    """Code of a cubin's functions without their names: instructions, shared memory and constants."""
    at, size, count, names = struct.unpack_from("<Q", cubin, 0x28)[0], *struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, at + k * size) for k in range(count)]
    table = headers[names]

    def name(header):
        start = table[4] + header[0]
        return cubin[start : cubin.index(b"\0", start)].decode()

    found = []
    for header in headers:
        kind = name(header).split(".")[1] if name(header).startswith(".") else ""
        text = cubin[header[4] : header[4] + header[5]]
        if kind == "text":
            found.append(("text", header[5], hashlib.sha256(text).hexdigest()))
        elif name(header).startswith(".nv.shared"):
            found.append(("shared", header[5], ""))
        elif re.match(r"\.nv\.constant[1-9]", name(header)):
            found.append(("constants", header[5], hashlib.sha256(text).hexdigest()))
    return sorted(found)


def without_names(ptx):
    """A digest of PTX without names, lines and comments."""
    text = re.sub(r"(?m)//.*$|^\s*\.(loc|file)\b.*$|^\s*\.section\b(.|\n)*?^\s*\}", "", ptx)
    numbers = {}
    # Symbols begin with a letter; registers, labels and instructions are no names of ours.
    text = re.sub(r"\b_Z\w+|\b[A-Za-z]\w*_param_\d+", lambda m: f"s{numbers.setdefault(m[0], len(numbers))}", text)
    return hashlib.sha256(re.sub(r"\s+", " ", text).encode()).hexdigest()


def compiled(folder, cache):
    """`functions` of the kernel in a folder and the digest of its PTX, kept by what it is made from."""
    made_from = sorted(p for p in folder.iterdir() if p.suffix in (".py", ".cu", ".cuh", ".h"))
    # kernel.json has the figures of a schedule too, which change no code.
    kernel = json.loads((folder / "kernel.json").read_text())
    content = b"\0".join(p.read_bytes() for p in made_from) + json.dumps(kernel.get("arguments")).encode()
    entry = cache / f"{hashlib.sha256(content).hexdigest()}.json"
    if entry.is_file():
        return json.loads(entry.read_text())
    # In a process of its own: assemble.py of both builds would be one module otherwise.
    run = subprocess.run(
        [sys.executable, "-B", __file__, "--cubin", str(folder)],
        capture_output=True,
        timeout=SECONDS,
        env=os.environ | {"TRITON_CACHE_DIR": str(cache / "triton")},
    )
    if run.returncode != 0:
        raise RuntimeError(run.stderr.decode().strip()[-300:])
    size = int.from_bytes(run.stdout[:8], "little")
    found = [functions(run.stdout[8 : 8 + size]), without_names(run.stdout[8 + size :].decode())]
    entry.write_text(json.dumps(found))
    return json.loads(json.dumps(found))


def write_cubin(folder):
    """Prints the cubin of a folder's kernel, its size in front, and its PTX."""
    sys.path.insert(0, folder)
    import assemble

    built = assemble.build(*assemble.read_kernel(folder))[0]
    cubin, ptx = built.asm["cubin"], built.asm["ptx"]
    sys.stdout.buffer.write(len(cubin).to_bytes(8, "little") + cubin + (ptx.encode() if isinstance(ptx, str) else ptx))


def generate(binary, source, flags, folder):
    """Writes a kernel; what the command said where it wrote none."""
    command = [binary, "compile", source, "--output", folder, "--no-assemble", "--no-cache", "--quiet", *flags]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=SECONDS)
    return None if run.returncode == 0 else f"exit {run.returncode}: {run.stderr.strip().splitlines()[:1]}"


def sources(folder, language):
    """The compiled part of the source, without comments."""
    text = "\n".join((folder / name).read_text() for name in LANGUAGES[language])
    return re.sub(r"(?m)^\s*(#|//).*$", "", text)


def compare(base, head, source, flags, renamed, cache):
    """The verdict on one kernel: same, different, or what both refuse."""
    old = [renamed.get(flag, flag) for flag in flags]
    language = "cuda" if "cuda" in flags else "gluon"
    with tempfile.TemporaryDirectory() as scratch:
        folders = [Path(scratch) / "base", Path(scratch) / "head"]
        said = [generate(base, source, old, folders[0]), generate(head, source, flags, folders[1])]
        if said[0] or said[1]:
            codes = [one and one.split(":")[0] for one in said]
            return ("refused" if codes[0] == codes[1] else "DIFFERENT"), f"base {said[0]}, head {said[1]}"
        if sources(folders[0], language) == sources(folders[1], language):
            return "same", "the same source"
        code = [compiled(folder, cache) for folder in folders]
        for part, what in enumerate(("the same machine code", "the same PTX")):
            if code[0][part] == code[1][part]:
                return "same", what
        keep = cache / "different" / re.sub(r"\W+", "_", f"{Path(source).stem} {' '.join(flags)}")
        for folder, side in zip(folders, ("base", "head")):
            (keep / side).mkdir(parents=True, exist_ok=True)
            for file in folder.iterdir():
                (keep / side / file.name).write_bytes(file.read_bytes())
        return "DIFFERENT", f"kept in {keep}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("base", help="twill as it was")
    parser.add_argument("head", help="twill as it is")
    parser.add_argument("--inputs", nargs="+", metavar="FILE", help="TTIR [default: every example]")
    parser.add_argument("--variant", action="append", metavar="FLAGS", help="options of compile [default: a set]")
    parser.add_argument("--renamed", action="append", default=[], metavar="NEW=OLD", help="an option that BASE calls OLD")
    parser.add_argument("--cache", type=Path, default=ROOT / "target" / "same-code" / "cubins")
    arguments = parser.parse_args()
    renamed = dict(one.split("=", 1) for one in arguments.renamed)
    inputs = arguments.inputs or sorted(map(str, (ROOT / "examples").glob("*.ttir")))
    arguments.cache.mkdir(parents=True, exist_ok=True)
    jobs = []
    for variant in arguments.variant or VARIANTS:
        flags = shlex.split(variant)
        for language in ["cuda"] if "cuda" in flags else list(LANGUAGES):
            own = flags if "cuda" in flags else [*flags, "--emit", language]
            jobs += [(source, own) for source in inputs]
    counts, wrong = {}, 0

    def run(job):
        try:
            return compare(arguments.base, arguments.head, *job, renamed, arguments.cache)
        except Exception as error:  # one kernel's failure is a finding, the others go on
            return "DIFFERENT", f"{type(error).__name__}: {error}"

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (source, flags), (verdict, why) in zip(jobs, pool.map(run, jobs)):
            key = f"{verdict}: {why}" if verdict == "same" else verdict
            counts[key] = counts.get(key, 0) + 1
            wrong += verdict == "DIFFERENT"
            if verdict == "DIFFERENT":
                print(f"{verdict} {Path(source).name} {' '.join(flags)}: {why}", flush=True)
    for key in sorted(counts):
        print(f"{counts[key]:5} {key}")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--cubin"]:
        write_cubin(sys.argv[2])
    else:
        sys.exit(main())
