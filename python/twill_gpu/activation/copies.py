"""Copies of the memory that a kernel writes: launches on them leave the application's memory as it was."""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any


class Copies:
    """The arguments of a launch on copied memory. Tensors that share memory share its copy."""

    def __init__(self, bound: dict[str, Any], read_only: Collection[str] = ()):
        """read_only: names of arguments that the kernel does not write; their memory is not copied.

        Raises `torch.cuda.OutOfMemoryError` where there is no memory, `ValueError` for memory that is no tensor's.
        """
        tensors = {name: tensor for name, value in bound.items() if (tensor := tensor_of(value)) is not None}
        for name, value in bound.items():
            if name not in tensors and name not in read_only and _has_memory(value):
                raise ValueError(f"{name} is no tensor of torch: its memory cannot be copied")
        self._pairs: dict[int, tuple[Any, Any]] = {}
        """Memory and its copy, by its address."""
        for name, tensor in tensors.items():
            storage = tensor.untyped_storage()
            if name not in read_only and storage.nbytes() and storage.data_ptr() not in self._pairs:
                self._pairs[storage.data_ptr()] = storage, storage.clone()
        self.values = {name: self._twin(value, tensors.get(name)) for name, value in bound.items()}
        """The arguments by name."""

    def restore(self) -> None:
        """Has the copies be as the memory is."""
        for original, own in self._pairs.values():
            own.copy_(original)

    def _twin(self, value: Any, tensor: Any) -> Any:
        if tensor is None:
            return value
        pair = self._pairs.get(tensor.untyped_storage().data_ptr())
        if pair is None:
            return value
        twin = tensor.new_empty(0).set_(pair[1], tensor.storage_offset(), tensor.size(), tensor.stride())
        if value is tensor:
            return twin
        described = copy.copy(value)
        described.base = twin
        return described


def _has_memory(value: Any) -> bool:
    """Whether a value is memory, or a tuple with some in it."""
    return any(map(_has_memory, value)) if isinstance(value, tuple) else hasattr(value, "data_ptr")


def tensor_of(value: Any) -> Any:
    """The tensor of an argument, if it is one or a descriptor of one."""
    base = getattr(value, "base", value)
    return base if hasattr(base, "data_ptr") and hasattr(base, "untyped_storage") else None
