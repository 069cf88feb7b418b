"""Makes `src/step.ptx` of `src/step.cu` by NVRTC; run it when that has changed.

    pip install nvidia-cuda-nvrtc-cu12==12.4.127
    python compile.py            # or --check: is step.ptx that of step.cu?
"""

import ctypes
import hashlib
import sys
from pathlib import Path

HERE = Path(__file__).parent / "src"
OPTIONS = [b"--gpu-architecture=compute_80", b"--std=c++17", b"--fmad=false"]
"""Without fused multiplication and addition, which processors do not do here either."""


def compiled(source: str) -> str:
    import nvidia.cuda_nvrtc

    (library,) = Path(list(nvidia.cuda_nvrtc.__path__)[0], "lib").glob("libnvrtc.so.*")
    nvrtc = ctypes.CDLL(str(library))
    program = ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"step.cu", 0, None, None) == 0
    failed = nvrtc.nvrtcCompileProgram(program, len(OPTIONS), (ctypes.c_char_p * len(OPTIONS))(*OPTIONS))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    if failed:
        raise SystemExit(log.value.decode())
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    return ptx.value.decode()


def main() -> None:
    source = (HERE / "step.cu").read_text(encoding="utf-8")
    first = f"// Made by compile.py of step.cu, sha256 {hashlib.sha256(source.encode()).hexdigest()}\n"
    if "--check" in sys.argv:
        is_that = (HERE / "step.ptx").read_text(encoding="utf-8").startswith(first)
        raise SystemExit(None if is_that else "step.ptx is not that of step.cu: run compile.py")
    lines = [line.rstrip() for line in compiled(source).splitlines() if not line.startswith("//")]
    (HERE / "step.ptx").write_text(first + "\n".join(lines).strip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
