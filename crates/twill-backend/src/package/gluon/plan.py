"""Launches of which everything was checked before: what is left open are addresses, and numbers.

In each launch Triton makes the tensor maps of descriptors anew, in Python. Here they are remembered by address, and the
function that Triton's own Python calls in the end is called directly. Where that cannot be, Triton launches: with hooks
that want to know of launches, with scratch memory, and with a driver that is not Triton's own. The function of Triton 3.6
is compiled for each kernel and takes its arguments one by one; that of 3.7 to 3.9 takes a list.
"""

import inspect

from triton import knobs
from triton.backends.nvidia.driver import TMA_DTYPE_DEVICE_TO_HOST, CudaLauncher
from triton.runtime.driver import driver

REMEMBERED = 1024
"""Tensor maps that a plan remembers of a descriptor, of less than half a kilobyte each."""


class Tile:
    """A tensor descriptor but for its address. before: bytes of rows before that."""

    __slots__ = ("shape", "strides", "block_shape", "layout", "before")

    def __init__(self, shape, strides, block_shape, layout, before=0):
        self.before = before
        self.shape, self.strides = tuple(shape), tuple(strides)
        self.block_shape, self.layout = block_shape, layout


class Descriptor:
    """A tensor descriptor, as Triton's launcher wants it, of what was checked before: an address, but no tensor."""

    __slots__ = ("address", "tile", "shape", "strides", "block_shape", "layout")
    padding, round_f32_to_tf32 = "zero", False

    def __init__(self, address, tile):
        self.address, self.tile = address - tile.before, tile
        self.shape, self.strides = tile.shape, tile.strides
        self.block_shape, self.layout = tile.block_shape, tile.layout

    @property
    def base(self):
        return self

    def data_ptr(self):
        return self.address


class TensorMaps(dict):
    """The tensor maps of a tile by address. They depend on nothing else, and own no memory of the GPU."""

    __slots__ = ("rest", "before")

    def __init__(self, tile, metadata):
        self.before = tile.before
        size, element = metadata["elem_size"], TMA_DTYPE_DEVICE_TO_HOST[metadata["elem_type"]]
        self.rest = metadata["swizzle"], size, element, metadata["block_size"], tile.shape, tile.strides, 0

    def __missing__(self, address):
        if len(self) >= REMEMBERED:
            self.clear()
        utils = driver.active.utils
        # Its name since Triton 3.7, and before.
        fill = getattr(utils, "fill_tma_descriptor_tiled", None) or utils.fill_tma_descriptor
        made = self[address] = fill(address - self.before, *self.rest)
        return made


class Plan:
    """A launch but for what may change from one to the next: addresses, and numbers that no matrix depends on.

    cuda: `torch.cuda`; index: that of the device.
    compiled: the kernel as Triton compiled it, for that device; None to launch nothing.
    template: arguments of the Gluon function, with a `Tile` for a descriptor whose address changes.
    changing: by position among them, which of the varying values goes there.
    """

    __slots__ = ("cuda", "index", "runner", "template", "changing", "function", "flat", "maps")

    def __init__(self, cuda, index, compiled, ctas, template, changing):
        self.cuda, self.index, self.template, self.changing = cuda, index, template, changing
        self.runner, self.function, self.flat, self.maps = nothing, None, None, []
        """What launches by Triton; the function that Triton calls in the end, if that can be called, and what makes its arguments."""
        if compiled is not None:
            self.runner = compiled[(ctas, 1, 1)]
            self._flatten(compiled, ctas)

    def launch(self, varying):
        """Launches with these varying values, on the current stream of the device."""
        if self.cuda.current_device() == self.index:
            self._launch(varying)
        else:
            with self.cuda.device(self.index):
                self._launch(varying)

    def _launch(self, varying):
        if self.function is None or is_hooked(knobs.runtime):
            self.runner(*self._arguments(varying))
        else:
            self.function(*self.flat(driver.active.get_current_stream(self.index), varying))

    def launch_on(self, stream, varying):
        """As `launch`, where the device is the current one, on a stream of it."""
        if self.function is None or is_hooked(knobs.runtime):
            self.runner(*self._arguments(varying), stream=stream)
        else:
            self.function(*self.flat(stream, varying))

    @property
    def steps(self):
        """What `launch_on` does without hooks: what makes arguments of stream and varying values, and the function that takes them.

        Where there is no such function: what launches, and None.
        """
        return (self.launch_on, None) if self.function is None else (self.flat, self.function)

    def _arguments(self, varying):
        """Those of the Gluon function, as Triton takes them."""
        arguments = self.template.copy()
        for position, which in self.changing.items():
            tile = arguments[position]
            arguments[position] = Descriptor(varying[which], tile) if isinstance(tile, Tile) else varying[which]
        return arguments

    def _flatten(self, compiled, ctas):
        """Finds Triton's function, and makes what makes its arguments: a descriptor is a tensor map, the shape and the strides."""
        launcher = getattr(compiled, "run", None)
        described = [isinstance(argument, (Tile, Descriptor)) for argument in self.template]
        function = launched_by(launcher, getattr(compiled, "metadata", None), sum(described))
        if function is None:
            return
        known = {}

        def constant(value):
            name = f"c{len(known)}"
            known[name] = value
            return name

        begin = [str(ctas), "1", "1", "stream", *map(constant, (compiled.function, launcher.launch_cooperative_grid, launcher.launch_pdl))]
        arguments, metadata = [], iter(compiled.metadata.tensordesc_meta or ())
        for position, argument in enumerate(self.template):
            which = self.changing.get(position)
            varying = None if which is None else f"varying[{which}]"
            if not described[position]:
                arguments.append(varying or constant(argument))
                continue
            tile = argument if isinstance(argument, Tile) else argument.tile
            maps = TensorMaps(tile, next(metadata))
            self.maps.append(maps)
            arguments.append(f"{constant(maps)}[{varying}]" if varying else constant(maps[argument.address]))
            arguments += map(constant, (*tile.shape, *tile.strides))
        packed = constant(compiled.packed_metadata)
        # Without scratch memory, and with nothing to tell to hooks.
        if hasattr(launcher, "arg_annotations"):
            more = map(constant, (launcher.arg_annotations, launcher.kernel_signature))
            given = [*begin, packed, *["None"] * 5, *more, f"[{', '.join(arguments)}]"]
        else:
            given = [*begin, "None", "None", packed, *["None"] * 3, *arguments]
        exec(f"def flat(stream, varying): return ({', '.join(given)},)", known)
        self.function, self.flat = function, known["flat"]


def launched_by(launcher, metadata, descriptors):
    """The function that Triton's launcher calls in the end; None where it does more than make that many descriptors."""
    if type(launcher) is not CudaLauncher or launcher.global_scratch_size or launcher.profile_scratch_size:
        return None
    # With Triton's sanitizer of global memory a kernel takes more arguments.
    if getattr(launcher, "gsan_enabled", False):
        return None
    if not descriptors:
        return launcher.launch
    known = metadata.tensordesc_meta or ()
    if len(known) != descriptors or any(one is None or one["fp4_padded"] for one in known):
        return None
    return inspect.getclosurevars(launcher.launch).nonlocals.get("launcher")


def is_hooked(runtime):
    """Whether anything is to be told of launches."""
    enter, leave = runtime.launch_enter_hook, runtime.launch_exit_hook
    return bool(getattr(enter, "calls", enter) or getattr(leave, "calls", leave))


def nothing(*_, stream=None):
    """The launch of no program."""
