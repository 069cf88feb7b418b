"""Packages that only some calls need, imported by those calls."""

from __future__ import annotations

import importlib
from types import ModuleType

from .errors import MissingError

TRITON = "3.6"
"""The version that kernels are generated for."""
INSTALL_TRITON = f"pip install 'triton=={TRITON}.0', or with torch: pip install 'twill-gpu[run]'"
INSTALL_TORCH = "pip install torch, or with Triton: pip install 'twill-gpu[run]'"


def triton(who: str) -> ModuleType:
    """Triton. Raises `MissingError` where it is not installed, or in another version."""
    module = _imported("triton", f"{who} needs Triton {TRITON}", INSTALL_TRITON)
    version = str(getattr(module, "__version__", "unknown"))
    if version != TRITON and not version.startswith(f"{TRITON}."):
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
