"""Runs the kernel of this folder on tensors of torch, in the place of the Triton kernel that it was made from.

    kernel = load()
    kernel(q, k, v, o, lse, scale, length, grid=(blocks, heads))
    run = kernel.prepare(q, k, v, o, lse, scale, length, grid=(blocks, heads))
    run()      # the same launch, with nothing left to check

Arguments and grid are those of the Triton kernel, without constexprs; a tensor stands for each descriptor. They are checked
against what the kernel was compiled for, and errors name the parameter. Needs Triton 3.6 and torch.
"""

import importlib.util
import math
import operator
from pathlib import Path

import triton
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

HERE = Path(__file__).resolve().parent
_spec = importlib.util.spec_from_file_location("twill_assemble", HERE / "assemble.py")
assemble = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(assemble)

TORCH = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "fp8e4nv": "float8_e4m3fn",
    "fp8e5": "float8_e5m2",
    "i1": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
}
REMEMBERED = 256
"""Launches that a kernel remembers, so that the same tensors are not checked again."""


def load(folder=None, inline_barriers=True):
    """The kernel of a folder, by default this file's. `inline_barriers=False` leaves the barriers to Gluon: slower."""
    return Kernel(HERE if folder is None else folder, inline_barriers)


class Address:
    """What a descriptor needs of a tensor. It does not keep the memory, so that a remembered launch does not either."""

    def __init__(self, tensor, shape=None, strides=None, dtype=None):
        self.address, self.dtype = tensor.data_ptr(), dtype or tensor.dtype
        self.shape, self.strides = shape or tensor.shape, strides or tensor.stride()

    def data_ptr(self):
        return self.address

    def stride(self):
        return self.strides


class Kernel:
    """A kernel that is compiled when first used on a device, for all sizes at once."""

    def __init__(self, folder, inline_barriers=True):
        self._kernel, self._function = assemble.read_kernel(folder)
        self._inline_barriers = inline_barriers
        self._parameters = self._kernel["parameters"]
        self._layouts = {
            block["argument"]: assemble.descriptor_layout(
                self._kernel, block["argument"], parameter["element"], block["shape"]
            )
            for parameter in self._parameters
            for block in parameter.get("blocks", ())
        }
        self._compiled, self._launches, self._nothing, self._barriers_at = {}, {}, {}, None

    def __call__(self, *args, grid, **named):
        """Launches the kernel on the current stream. `grid` is that of the Triton kernel."""
        values = self._bind(args, named)
        programs = self._programs(grid, values)
        key = (programs, *(identity(parameter["kind"], values[parameter["name"]]) for parameter in self._parameters))
        launch = self._launches.get(key)
        if launch is None:
            launch = self._prepare(values, programs)
            if len(self._launches) >= REMEMBERED:
                self._launches.clear()
            self._launches[key] = launch
        launch()

    def prepare(self, *args, grid, **named):
        """A function without arguments that launches the kernel on these; it keeps them alive."""
        values = self._bind(args, named)
        launch = self._prepare(values, self._programs(grid, values))
        return lambda keep=values: launch()

    @property
    def info(self):
        """What the kernel is; `registers` (at entry), `spills` and `barriers_at` are None until it was first used."""
        schedule, compiled = self._kernel.get("schedule", {}), next(iter(self._compiled.values()), None)
        return {
            "name": self._kernel["name"],
            "ii": schedule.get("interval"),
            "stages": schedule.get("stages"),
            "status": schedule.get("status"),
            "constants": self._kernel.get("constants", {}),
            "registers": getattr(compiled, "n_regs", None),
            "spills": getattr(compiled, "n_spills", None),
            "barriers_at": self._barriers_at,
        }

    # --------------------------------------------------------------------------------------------- arguments
    def _fail(self, kind, parameter, message):
        raise kind(f"{self._kernel['name']}: {parameter['name']}: {message}")

    def _bind(self, args, named):
        """Value of each parameter by its name, in order."""
        name, names = self._kernel["name"], [parameter["name"] for parameter in self._parameters]
        if len(args) > len(names):
            raise TypeError(f"{name} takes {len(names)} arguments ({', '.join(names)}), but {len(args)} were given")
        values = dict(zip(names, args))
        for key, value in named.items():
            if key in values:
                raise TypeError(f"{name}: {key} was given twice")
            if key in names:
                values[key] = value
            elif key not in self._kernel.get("constants", {}):
                raise TypeError(f"{name} has no parameter {key}; it has {', '.join(names)}")
            elif value != self._kernel["constants"][key]:
                raise ValueError(
                    f"{name} was compiled for {key} = {self._kernel['constants'][key]}, not {value}: compile it again"
                )
        missing = [key for key in names if key not in values]
        if missing:
            raise TypeError(f"{name} takes {len(names)} arguments; missing: {', '.join(missing)}")
        return {key: values[key] for key in names}

    def _programs(self, grid, values):
        """Programs of the Triton kernel in x, y and z."""
        if callable(grid):
            grid = grid({**self._kernel.get("constants", {}), **values})
        try:
            sizes = tuple(operator.index(size) for size in (grid if isinstance(grid, (tuple, list)) else (grid,)))
        except TypeError:
            raise TypeError(f"{self._kernel['name']}: grid must be one to three whole numbers, not {grid!r}") from None
        if not 1 <= len(sizes) <= 3 or min(sizes) < 0:
            raise ValueError(
                f"{self._kernel['name']}: grid must be one to three whole numbers that are not negative, not {grid!r}"
            )
        return sizes + (1,) * (3 - len(sizes))

    def _tensor(self, parameter, value, device):
        if not all(hasattr(value, name) for name in ("data_ptr", "dtype", "shape", "stride", "device")):
            hint = ": give the tensor itself, the descriptor is made of it" if hasattr(value, "block_shape") else ""
            self._fail(TypeError, parameter, f"must be a torch tensor, not {type(value).__name__}{hint}")
        wanted = f"torch.{TORCH[parameter['element']]}"
        if str(value.dtype) != wanted:
            self._fail(TypeError, parameter, f"must be of {wanted}, not {value.dtype}")
        if value.device.type != "cuda":
            self._fail(ValueError, parameter, f"must be on a GPU, not on {value.device}")
        if value.device != device:
            self._fail(ValueError, parameter, f"is on {value.device}, an argument before it on {device}")
        if parameter["kind"] == "descriptor":
            self._descriptor(parameter, value)
        elif parameter.get("divisible_by_16") and value.data_ptr() % 16:
            self._fail(ValueError, parameter, "must begin at a multiple of 16 bytes: the kernel was compiled for that")

    def _descriptor(self, parameter, value):
        rank, shape, strides = (
            len(parameter["blocks"][0]["shape"]) if parameter["blocks"] else len(value.shape),
            value.shape,
            value.stride(),
        )
        if len(shape) != rank:
            self._fail(ValueError, parameter, f"must have {rank} dimensions, not {len(shape)} (shape {tuple(shape)})")
        if min(shape, default=1) < 1:
            self._fail(ValueError, parameter, f"must not be empty (shape {tuple(shape)})")
        if strides[-1] != 1:
            self._fail(
                ValueError,
                parameter,
                f"must be contiguous in its last dimension, but the stride there is {strides[-1]}",
            )
        if value.data_ptr() % 16:
            self._fail(ValueError, parameter, "must begin at a multiple of 16 bytes")
        uneven = [stride for stride in strides[:-1] if stride * value.element_size() % 16]
        if uneven:
            self._fail(ValueError, parameter, f"strides must be multiples of 16 bytes, but one is {uneven[0]} elements")

    def _matrix(self, parameter, block, value, given):
        """The matrix behind a pointer: what the kernel's own addresses and masks would read of it."""
        rows, columns, stride = (given.get(size, size) for size in (*block["extents"], block["strides"][0]))
        size = value.element_size()
        for name in block.get("not_negative", ()):
            if given[name] < 0:
                self._fail(ValueError, parameter, f"{name} must not be negative, but is {given[name]}")
        if min(rows, columns) < 1:
            # Every mask is false. No descriptor may be empty, but one of zeros reads the same.
            return Address(self._zeros(value.device), (1, 16 // size), (16 // size, 1), value.dtype)
        name = block["strides"][0]
        if stride < 0:
            self._fail(ValueError, parameter, f"{name} must not be negative, but is {stride}")
        if stride * size % 16:
            self._fail(ValueError, parameter, f"{name} must be a multiple of 16 bytes, but is {stride} elements")
        return Address(value, (rows, columns), (stride, 1))

    def _zeros(self, device):
        """16 bytes of zeros on a device."""
        if device not in self._nothing:
            import torch

            self._nothing[device] = torch.zeros(16, dtype=torch.uint8, device=device)
        return self._nothing[device]

    def _number(self, parameter, value):
        element = parameter["element"]
        if element.startswith(("fp", "bf")):
            try:
                return float(value)
            except (TypeError, ValueError, RuntimeError):
                self._fail(TypeError, parameter, f"must be a number, not {type(value).__name__}")
        try:
            number = operator.index(value)
        except TypeError:
            self._fail(TypeError, parameter, f"must be a whole number, not {type(value).__name__}")
        bits, signed = int(element[1:]), element.startswith("i") and element != "i1"
        least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        if not least <= number <= most:
            self._fail(ValueError, parameter, f"{number} does not fit {element}")
        if parameter.get("divisible_by_16") and number % 16:
            self._fail(
                ValueError, parameter, f"must be a multiple of 16, but is {number}: the kernel was compiled for that"
            )
        return number

    # --------------------------------------------------------------------------------------------- launching
    def _prepare(self, values, programs):
        """A launch with everything checked and converted. It keeps no tensor."""
        import torch

        tensors = [values[parameter["name"]] for parameter in self._parameters if parameter["kind"] != "scalar"]
        device = next((tensor.device for tensor in tensors if hasattr(tensor, "data_ptr")), None)
        device = device or torch.device("cuda", torch.cuda.current_device())
        given = dict(zip(assemble.PROGRAMS, programs))
        for parameter in self._parameters:
            name, value = parameter["name"], values[parameter["name"]]
            if parameter["kind"] == "scalar":
                given[name] = self._number(parameter, value)
                continue
            self._tensor(parameter, value, device)
            if parameter["kind"] == "pointer":
                given[name] = value.data_ptr()
        for parameter in self._parameters:
            for block in parameter.get("blocks", ()):
                argument, value = block["argument"], values[parameter["name"]]
                seen = Address(value) if "extents" not in block else self._matrix(parameter, block, value, given)
                given[argument] = TensorDescriptor.from_tensor(seen, list(block["shape"]), self._layouts[argument])
        index = device.index
        with torch.cuda.device(index):
            ctas = self._ctas(programs, index)
            if ctas == 0:
                return lambda: None
            runner = self._load(index)[(ctas, 1, 1)]
        arguments = [given[name] for name in self._kernel["arguments"]] + [self._barriers_at]

        def launch():
            if torch.cuda.current_device() == index:
                runner(*arguments)
            else:
                with torch.cuda.device(index):
                    runner(*arguments)

        return launch

    def _ctas(self, programs, index):
        """Thread blocks that run so many programs."""
        import torch

        grid = self._kernel["grid"]
        ctas = math.prod(-(-count // per) for count, per in zip(programs, grid["programs_per_cta"]))
        if grid["kind"] == "persistent":
            ctas = min(ctas, torch.cuda.get_device_properties(index).multi_processor_count * grid["ctas_per_sm"])
        if ctas >= 1 << 31:
            raise ValueError(
                f"{self._kernel['name']}: grid {programs} takes {ctas} thread blocks, more than a launch can have"
            )
        return ctas

    def _load(self, index):
        """The kernel compiled for a device."""
        if index not in self._compiled:
            import torch

            target = assemble.target(self._kernel)
            major, minor = torch.cuda.get_device_capability(index)
            if 10 * major + minor != target.arch:
                name = torch.cuda.get_device_name(index)
                raise RuntimeError(
                    f"{self._kernel['name']} was made for {self._kernel['architecture']}, but cuda:{index} ({name}) is "
                    f"sm_{10 * major + minor}: compile the kernel for a machine like that"
                )

            def build(barriers_at):
                text = assemble.source(self._kernel, self._function, barriers_at)
                compiled = triton.compile(text, target=target, options={"num_warps": self._kernel["num_warps"]})
                return compiled, compiled.asm["ptx"]

            if self._inline_barriers:
                compiled, self._barriers_at = assemble.place_barriers(build, self._kernel["barriers_at"])
            else:
                compiled, self._barriers_at = build(assemble.GLUON_BARRIERS)[0], assemble.GLUON_BARRIERS
            self._compiled[index] = compiled
        return self._compiled[index]


def identity(kind, value):
    """What a remembered launch depends on; None for what no launch can be made of."""
    if kind == "scalar":
        number = value.item() if hasattr(value, "item") else value
        return number if isinstance(number, (int, float)) else None
    if hasattr(value, "data_ptr"):
        return value.data_ptr(), value.dtype, value.shape, value.stride(), value.device
    return None
