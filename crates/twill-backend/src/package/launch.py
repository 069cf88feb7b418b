"""Runs the kernel of this folder on tensors of torch, in the place of the Triton kernel that it was made from.

    kernel = load()
    kernel(q, k, v, o, lse, scale, length, grid=(blocks, heads))
    run = kernel.prepare(q, k, v, o, lse, scale, length, grid=(blocks, heads))
    run()      # the same launch, with nothing left to check

Arguments and grid are those of the Triton kernel, without constexprs. Where that takes a descriptor, a descriptor or a
tensor may be given: the tiles of this kernel are of other shapes and layouts, so descriptors are made again, with the
address, shape and strides of the given one. Arguments are checked against what the kernel was compiled for, and errors
name the parameter. Needs torch and what `assemble.py` needs.
"""

import functools
import importlib.util
import math
import operator
from contextlib import nullcontext
from pathlib import Path

HERE = Path(__file__).resolve().parent


def next_to(name):
    """Another file of this folder as a module."""
    spec = importlib.util.spec_from_file_location(f"twill_{name}", HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


assemble, planning = next_to("assemble"), next_to("plan")

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
POSITIVE = (2**-32, 2**32)
"""What a number is between that must be positive."""
LOADED = []
"""Kernels that were loaded: they stay so, as CUDA graphs may have them. Triton unloads what nobody has, from 3.8 on."""
REMEMBERED = 256
"""Plans that a kernel remembers, so that tensors of the same shapes are not checked again."""


def load(folder=None, inline_barriers=True):
    """The kernel of a folder, by default this file's. `inline_barriers=False` leaves those of Gluon to Triton: slower."""
    return Kernel(HERE if folder is None else folder, inline_barriers)


class Refused(Exception):
    """Arguments that this kernel cannot take. The Triton kernel that it was made from may be able to."""


class RefusedType(Refused, TypeError):
    """An argument of a type that this kernel cannot take."""


class RefusedValue(Refused, ValueError):
    """An argument of a value that this kernel cannot take."""


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
        self._readers = Readers(self._parameters)
        self._compiled, self._plans, self._nothing, self._multiprocessors = {}, {}, {}, {}
        self._first, self._barriers_at, self._assembler = None, None, None

    def __call__(self, *args, grid, **named):
        """Launches the kernel on the current stream. `grid` is that of the Triton kernel."""
        self.launch(self._bind(args, named), grid)

    def launch(self, values, grid):
        """Launches the kernel on values by their parameters' names, among which there may be others that it has not."""
        plan, varying = self.plan(values, grid)
        plan.launch(varying)

    def prepare(self, *args, grid, **named):
        """A function without arguments that launches the kernel on these; it keeps them alive."""
        values = self._bind(args, named)
        plan, varying = self.plan(values, grid)
        return lambda keep=values: plan.launch(varying)

    @property
    def info(self):
        """What the kernel is; all from `registers` (at entry) on is None until it was first used."""
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
            "assembler": self._assembler,
        }

    # --------------------------------------------------------------------------------------------- arguments
    def _fail(self, kind, parameter, message):
        refused = RefusedType if kind is TypeError else RefusedValue
        raise refused(f"{self._kernel['name']}: {parameter['name']}: {message}")

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
        if type(grid) is tuple and 1 <= len(grid) <= 3:
            x, y, z = sizes = (*grid, 1, 1)[:3]
            if type(x) is type(y) is type(z) is int and x >= 0 and y >= 0 and z >= 0:
                return sizes
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
        """Checks a tensor or descriptor; the device that it is on."""
        tensor = value
        if is_descriptor(value):
            if parameter["kind"] != "descriptor":
                self._fail(TypeError, parameter, "must be a torch tensor, not a descriptor")
            if getattr(value, "padding", "zero") != "zero":
                self._fail(ValueError, parameter, f"must be padded with zero, not with {value.padding}")
            if getattr(value, "round_f32_to_tf32", False):
                self._fail(ValueError, parameter, "must not round to tf32 as it is copied")
            tensor = value.base
        if not all(hasattr(tensor, name) for name in ("data_ptr", "dtype", "shape", "stride", "device")):
            self._fail(TypeError, parameter, f"must be a torch tensor, not {type(value).__name__}")
        wanted = f"torch.{TORCH[parameter['element']]}"
        # TTIR knows whole numbers without their signs: operations have them.
        if str(tensor.dtype).replace("torch.uint", "torch.int") not in (wanted, parameter["element"]):
            self._fail(TypeError, parameter, f"must be of {wanted}, not {tensor.dtype}")
        if tensor.device.type != "cuda":
            self._fail(ValueError, parameter, f"must be on a GPU, not on {tensor.device}")
        if device is not None and tensor.device != device:
            self._fail(ValueError, parameter, f"is on {tensor.device}, an argument before it on {device}")
        if parameter["kind"] == "descriptor":
            self._descriptor(parameter, tensor, *extent(value))
        elif parameter.get("divisible_by_16") and tensor.data_ptr() % 16:
            self._fail(ValueError, parameter, "must begin at a multiple of 16 bytes: the kernel was compiled for that")
        return tensor.device

    def _descriptor(self, parameter, tensor, shape, strides):
        """That a descriptor of this shape and these strides can be made of a tensor's memory."""
        rank = len(parameter["blocks"][0]["shape"]) if parameter["blocks"] else len(shape)
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
        if tensor.data_ptr() % 16:
            self._fail(ValueError, parameter, "must begin at a multiple of 16 bytes")
        size = tensor.element_size()
        uneven = [stride for stride in strides[:-1] if stride * size % 16]
        if uneven:
            self._fail(ValueError, parameter, f"strides must be multiples of 16 bytes, but one is {uneven[0]} elements")

    def _matrix(self, parameter, block, value, given):
        """The matrices that a pointer points to, as the kernel's own masks would read them.

        Shape, strides, and the address if it is not the pointer's.
        """
        size, (*before, _) = value.element_size(), block["strides"]
        extents = tuple(given.get(extent, extent) for extent in block["extents"])
        for formula in block.get("not_negative", ()):
            number = value_of(formula, given)
            if number < 0:
                self._fail(ValueError, parameter, f"{written(formula)} must not be negative, but is {number}")
        if min(extents) < 1 or not value.data_ptr():
            # Every mask is false, or there is no memory. No descriptor may be empty, but one of zeros reads the same.
            several, zeros = (1,) * len(before), self._zeros(value.device, block["argument"])
            return (*several, 16 // size), (*(16 // size for _ in before), 1), zeros.data_ptr()
        strides = [given.get(name, name) for name in before]
        if value.data_ptr() <= block.get("bytes_before", 0):
            self._fail(ValueError, parameter, "is at too low an address for tiles that may lie before it")
        for name, stride in zip(before, strides):
            if stride < 0:
                self._fail(ValueError, parameter, f"{name} must not be negative, but is {stride}")
            if stride * size % 16:
                self._fail(ValueError, parameter, f"{name} must be a multiple of 16 bytes, but is {stride} elements")
        return extents, (*strides, 1), None

    def _zeros(self, device, argument):
        """16 bytes of zeros on a device for a descriptor: what is stored through one is read through none."""
        if (device, argument) not in self._nothing:
            import torch

            self._nothing[device, argument] = torch.zeros(16, dtype=torch.uint8, device=device)
        return self._nothing[device, argument]

    def _number(self, parameter, value):
        element = parameter["element"]
        if element.startswith(("fp", "bf")):
            try:
                number = float(value)
            except (TypeError, ValueError, RuntimeError):
                self._fail(TypeError, parameter, f"must be a number, not {type(value).__name__}")
            if parameter.get("positive") and not POSITIVE[0] <= number <= POSITIVE[1]:
                self._fail(
                    ValueError,
                    parameter,
                    f"must be from 2^-32 to 2^32, but is {number}: the kernel takes maxima before it multiplies by it",
                )
            return number
        try:
            number = operator.index(value)
        except TypeError:
            self._fail(TypeError, parameter, f"must be a whole number, not {type(value).__name__}")
        least, most = limits_of(element)
        if not least <= number <= most:
            self._fail(ValueError, parameter, f"{number} does not fit {element}")
        if parameter.get("divisible_by_16") and number % 16:
            self._fail(
                ValueError, parameter, f"must be a multiple of 16, but is {number}: the kernel was compiled for that"
            )
        if number == 0 and parameter.get("not_zero"):
            self._fail(ValueError, parameter, "must not be 0: the kernel divides by it")
        least = parameter.get("at_least", 0)
        if 0 < number < least:
            self._fail(
                ValueError,
                parameter,
                f"must be 0, or at least {least}, but is {number}: the loop has longer steps than its source",
            )
        return number

    # --------------------------------------------------------------------------------------------- launching
    def plan(self, values, grid):
        """A plan for values like these, and what it leaves open of them: `plan.launch(open)` launches."""
        key, varying = self._form(values, grid)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._make_plan(values, key[0])
            if len(self._plans) >= REMEMBERED:
                self._plans.clear()
            self._plans[key] = plan
        if None in varying:
            _, numbers = self._check(values)
            varying = [numbers.get(name, value) for name, value in zip(self._readers.varying, varying)]
        return plan, varying

    def is_planned(self, values, grid):
        """Whether a launch on values like these has nothing left to make or load."""
        return self._form(values, grid)[0] in self._plans

    @property
    def reading(self):
        """How arguments are read."""
        return self._readers

    def magnitudes(self, varying):
        """Bits of the whole numbers among what a plan leaves open: launches that differ in no more are alike in work."""
        first = len(self._readers.memory)
        return tuple(number.bit_length() for number in varying[first : first + len(self._readers.counts)])

    def _form(self, values, grid):
        """What a plan depends on, and what it leaves open; None for what has to be checked first."""
        return self._readers.form(self._programs(grid, values), values)

    def _check(self, values):
        """That each value suits its parameter; the numbers, converted, and the device of the tensors."""
        import torch

        device, given = None, {}
        for parameter in self._parameters:
            value = values[parameter["name"]]
            if parameter["kind"] == "scalar":
                given[parameter["name"]] = self._number(parameter, value)
            else:
                device = self._tensor(parameter, value, device)
        return device or torch.device("cuda", torch.cuda.current_device()), given

    def _make_plan(self, values, programs):
        """A launch with everything checked and converted. It keeps no tensor."""
        import torch

        device, given = self._check(values)
        given.update(zip(assemble.PROGRAMS, programs))
        places = {name: position for position, name in enumerate(self._kernel["arguments"])}
        template = [given.get(name) for name in self._kernel["arguments"]]
        varying = self._readers.varying
        changing = {places[name]: which for which, name in enumerate(varying) if name in places}
        for parameter in self._parameters:
            for block in parameter.get("blocks", ()):
                argument, value, address = block["argument"], values[parameter["name"]], None
                if "extents" in block:
                    shape, strides, address = self._matrix(parameter, block, value, given)
                else:
                    shape, strides = extent(value)
                before = block.get("bytes_before", 0) if address is None else 0
                tile = planning.Tile(shape, strides, list(block["shape"]), self._layouts[argument], before)
                if address is None:
                    template[places[argument]] = tile
                    changing[places[argument]] = varying.index(parameter["name"])
                else:
                    template[places[argument]] = planning.Descriptor(address, tile)
        index = device.index
        ctas = self._ctas(programs, index)
        if ctas == 0:
            return planning.Plan(torch.cuda, index, None, 0, template, changing)
        with nullcontext() if torch.cuda.current_device() == index else torch.cuda.device(index):
            compiled = self._load(index)
            tail = [] if self._barriers_at is None else [self._barriers_at]
            return planning.Plan(torch.cuda, index, compiled, ctas, template + tail, changing)

    def _ctas(self, programs, index):
        """Thread blocks that run this many programs."""
        grid = self._kernel["grid"]
        extents = [-(-count // per) for count, per in zip(programs, grid["cta_coarsening"])]
        tiles, cluster = math.prod(extents), grid.get("cluster", 1)
        if tiles and extents[0] % cluster:
            raise RefusedValue(
                f"{self._kernel['name']}: grid {programs} has {extents[0]} thread blocks along its first axis, and {cluster}"
                " form a cluster; compile without --cluster for such grids"
            )
        ctas, beyond = tiles, 0
        if grid["kind"] == "persistent":
            if index not in self._multiprocessors:
                import torch

                self._multiprocessors[index] = torch.cuda.get_device_properties(index).multi_processor_count
            resident = max(self._multiprocessors[index] * grid["ctas_per_sm"] // cluster, 1) * cluster
            ctas = cta_count(grid["ctas"], tiles, resident, extents)
            ctas += -ctas % cluster
            # Beyond the last tile a thread block counts one step of the grid, or two in serpentine order.
            beyond = 2 * ctas if "serpentine" in grid else ctas
        if tiles + beyond >= 1 << 31:
            raise ValueError(
                f"{self._kernel['name']}: grid {programs} takes {tiles} tiles, more than a launch can have"
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
            # Each device needs one of its own.
            compiled, self._first = self._first or self._build(), None
            self._compiled[index] = compiled
            LOADED.append(compiled)
        return self._compiled[index]

    @property
    def is_compiled(self):
        """Whether there is machine code of it."""
        return self._first is not None or bool(self._compiled)

    @property
    def is_kept(self):
        """Whether its machine code is there, so that no compiler has to run."""
        return self.is_compiled or assemble.is_kept(self._kernel, self._function)

    def keep(self, folder):
        """Keeps its machine code in a folder of its files, where no compiler's cache does."""
        assemble.keep(folder, self._kernel, self._function, self.compile())

    def compile(self):
        """The kernel compiled, with its machine code in `asm`. Needs no GPU and no torch."""
        if self.is_compiled:
            return self._first or next(iter(self._compiled.values()))
        self._first = self._build()
        return self._first

    def _build(self):
        compiled, self._barriers_at = assemble.build(self._kernel, self._function, self._inline_barriers)
        self._assembler = assemble.assembler(self._kernel, compiled)
        return compiled


def cta_count(counts, tiles, resident, extents):
    """Thread blocks that work on this many tiles, `resident` of which run at once: by the first of the counts whose condition holds."""
    if not tiles:
        return 0
    names = {"tiles": tiles, "resident": resident, "columns": extents[0], "rows": extents[1]}
    for count in counts:
        names["waves"] = value_of(count["waves"], names)
        if "if" not in count or value_of(count["if"], names):
            return value_of(count["ctas"], names)
    return tiles


OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "%": operator.mod,
    "min": min,
    "max": max,
    "==": operator.eq,
    "<": operator.lt,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
}


def value_of(formula, names):
    """A formula of kernel.json: a number, a name, or an operator and what it takes."""
    if isinstance(formula, list):
        symbol, a, b = formula
        return OPERATORS[symbol](value_of(a, names), value_of(b, names))
    return names[formula] if isinstance(formula, str) else formula


def written(formula):
    """A formula as a reader knows it."""
    if not isinstance(formula, list):
        return str(formula)
    symbol, a, b = formula[0], written(formula[1]), written(formula[2])
    if symbol in ("min", "max"):
        return f"{symbol}({a}, {b})"
    return f"({a} {symbol} {b})"


def names_in(formula):
    """The names of a formula."""
    if isinstance(formula, list):
        return names_in(formula[1]) | names_in(formula[2])
    return {formula} if isinstance(formula, str) else set()


def is_descriptor(value):
    """Whether it is a tensor descriptor of Triton or Gluon, or like one."""
    return hasattr(value, "block_shape") and hasattr(value, "base")


def extent(value):
    """Shape and strides of a tensor, or those that a descriptor gives it."""
    return (value.shape, value.strides) if is_descriptor(value) else (value.shape, value.stride())


def whole(value):
    """What a plan depends on of a whole number; of anything else, what no plan is like."""
    number = value.item() if hasattr(value, "item") else value
    return number if isinstance(number, int) else object()


def pointed(value):
    """Address of a tensor that a pointer is made of, and what a plan depends on besides."""
    try:
        address = value.data_ptr()
    except AttributeError:
        return None, None
    return address, (address & 15, value.dtype, place_of(value))


def tiled(value):
    """Address of a tensor or descriptor that descriptors are made of, and what a plan depends on besides."""
    try:
        if is_descriptor(value):
            tensor = value.base
            padding = getattr(value, "padding", "zero"), getattr(value, "round_f32_to_tf32", False)
            shape, strides = tuple(value.shape), tuple(value.strides)
        else:
            tensor, padding, shape, strides = value, ("zero", False), value.shape, value.stride()
        address = tensor.data_ptr()
    except AttributeError:
        return None, None
    return address, (address & 15, tensor.dtype, place_of(tensor), shape, strides, padding)


def place_of(tensor):
    """What tells devices apart: of torch's tensors a number, which is quicker than a device."""
    try:
        return tensor.get_device()
    except AttributeError:
        return tensor.device


@functools.cache
def limits_of(element):
    """Least and greatest value of a type of whole numbers."""
    bits, signed = int(element[1:]), element.startswith("i") and element != "i1"
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


class Readers:
    """How a launch reads parameters, by their names.

    sizes: whole numbers that a plan depends on; memory: tensors, whether descriptors are made of them or they are some, and
    the bytes of rows before them; counts: other whole numbers, with the least, the greatest and the bits that must not be
    set; reals: all others, with the least and the greatest.
    """

    def __init__(self, parameters):
        blocks = [block for parameter in parameters for block in parameter.get("blocks", ())]
        sizes = {size for b in blocks for key in ("extents", "strides") for size in b.get(key, ())}
        sizes.update(*(names_in(formula) for b in blocks for formula in b.get("not_negative", ())))
        self.sizes, self.memory, self.counts, self.reals = [], [], [], []
        for parameter in parameters:
            name, element = parameter["name"], parameter["element"]
            if parameter["kind"] != "scalar":
                blocks = parameter.get("blocks", ())
                before = max((block.get("bytes_before", 0) for block in blocks), default=0)
                self.memory.append((name, parameter["kind"] == "descriptor", before))
            elif element.startswith(("fp", "bf")):
                self.reals.append((name, *(POSITIVE if parameter.get("positive") else (None, None))))
            elif name in sizes or parameter.get("not_zero"):
                self.sizes.append(name)
            else:
                least, most = limits_of(element)
                # What is below is looked at one by one.
                least = max(least, parameter.get("at_least", least))
                self.counts.append((name, least, most, 15 if parameter.get("divisible_by_16") else 0))
        self.varying = [name for name, *_ in (*self.memory, *self.counts, *self.reals)]
        """What varies between launches by one plan."""
        self.form = self._form_of()
        """Of programs and values: what a plan depends on, and what it leaves open."""

    def _form_of(self):
        """A function of as many lines as there are parameters, as loops over them would take twice its time."""
        known = {"whole": whole, "pointed": pointed, "tiled": tiled}
        lines, form, varying = ["def form(programs, values):"], ["programs"], []
        for i, name in enumerate(self.sizes):
            lines += [f"    s{i} = values[{name!r}]", f"    if s{i}.__class__ is not int: s{i} = whole(s{i})"]
            form.append(f"s{i}")
        for i, (name, is_tiled, before) in enumerate(self.memory):
            if not is_tiled:
                lines += [
                    f"    p{i} = values[{name!r}]",
                    f"    try: a{i} = p{i}.data_ptr(); l{i} = (a{i} & 15, p{i}.dtype, p{i}.get_device())",
                    f"    except AttributeError: a{i}, l{i} = pointed(p{i})",
                ]
            else:
                lines.append(f"    a{i}, l{i} = tiled(values[{name!r}])")
            form.append(f"((l{i}, a{i} > {before}) if a{i} is not None else l{i})" if before else f"l{i}")
            varying.append(f"a{i}")
        for i, (name, least, most, below) in enumerate(self.counts):
            lines.append(f"    c{i} = values[{name!r}]")
            is_even = f" and not c{i} & {below}" if below else ""
            varying.append(f"c{i} if c{i}.__class__ is int and {least} <= c{i} <= {most}{is_even} else None")
        for i, (name, least, most) in enumerate(self.reals):
            lines.append(f"    r{i} = values[{name!r}]")
            fits = "" if least is None else f" and {least!r} <= r{i} <= {most!r}"
            varying.append(f"r{i} if r{i}.__class__ is float{fits} else None")
        lines.append(f"    return ({', '.join(form)},), [{', '.join(varying)}]")
        exec("\n".join(lines), known)
        return known["form"]
