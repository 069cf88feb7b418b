"""An input: a Triton function, TTIR, a loop graph, or the name of a built-in one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from . import _twill, needs
from .backend import question
from .errors import InputError
from .graph import Graph
from .machine import Machine


def question_of(
    what: Callable[..., Any] | str | os.PathLike[str] | Graph,
    machine: str | os.PathLike[str] | Machine | None,
    signature: object,
    constexprs: Mapping[str, object] | None,
    options: Mapping[str, object],
) -> _twill.Question:
    """The question to `_twill` about an input. Raises `InputError` where it is none."""
    if callable(what) or hasattr(what, "fn"):
        if signature is None:
            raise InputError("a Triton function needs signature=…, the types of its parameters, such as {'x_ptr': '*fp16:16'}")
        needs.triton("scheduling a Triton function")
        from .front_end import ttir_of

        name, text = ttir_of(what, signature, constexprs or {}, machine)
        return question("kernel", name, text, machine, options)
    if signature is not None or constexprs is not None:
        raise InputError("signature and constexprs are for Triton functions; TTIR and graphs have theirs already")
    if isinstance(what, Graph):
        return question("graph", what.name, what.to_json(), machine, options)
    if isinstance(what, str) and "\n" in what:
        return question("kernel", "kernel", what, machine, options)
    return _named(os.fspath(what), machine, options)


def _named(name: str, machine: str | os.PathLike[str] | Machine | None, options: Mapping[str, object]) -> _twill.Question:
    path = Path(name)
    if not path.exists() and not path.suffix and len(path.parts) == 1:
        return question("builtin", name, "", machine, options)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {name}: {error}") from error
    is_graph = path.suffix == ".json" or (path.suffix != ".ttir" and text.lstrip().startswith("{"))
    return question("graph" if is_graph else "kernel", name, text, machine, options)
