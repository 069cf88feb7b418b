"""Packages that only some calls need, imported by those calls."""

from __future__ import annotations

import importlib
import re
from types import ModuleType

from .errors import MissingError

FIRST_TRITON, LAST_TRITON = (3, 6), (3, 9)
"""The versions that kernels are generated for."""
TRITON = "3.6 to 3.9"
"""The same in words."""
TRITON_REQUIREMENT = "triton>=3.6,<3.10"
INSTALL_TRITON = f"pip install 'twill-gpu[gluon]', or without torch: pip install '{TRITON_REQUIREMENT}'"
INSTALL_TORCH = "pip install 'twill-gpu[gluon]'"


def triton(who: str) -> ModuleType:
    """Triton. Raises `MissingError` where it is not installed, or in a version that kernels are not generated for."""
    module = _imported("triton", f"{who} needs Triton {TRITON}", INSTALL_TRITON)
    version = str(getattr(module, "__version__", "unknown"))
    numbers = re.match(r"(\d+)\.(\d+)(?!\d)", version)
    if numbers is None or not FIRST_TRITON <= (int(numbers[1]), int(numbers[2])) <= LAST_TRITON:
        raise MissingError(f"{who} needs Triton {TRITON}, but {version} is installed: {INSTALL_TRITON}")
    return module


def torch(who: str) -> ModuleType:
    """torch. Raises `MissingError` where it is not installed."""
    return _imported("torch", f"{who} needs torch", INSTALL_TORCH)


def _imported(name: str, needed: str, install: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise MissingError(f"{needed}, whose installation is broken ({error}): {install}") from error
        raise MissingError(f"{needed}, which is not installed: {install}") from error
    except ImportError as error:
        raise MissingError(f"{needed}, which cannot be imported ({error}): {install}") from error
