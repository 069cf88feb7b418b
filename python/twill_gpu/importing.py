"""What is done when a module was imported, whoever imports it and whenever."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any


class AfterImport:
    """Calls `act` with a module once it was imported: now, if it is there. Errors of `act` are not the importer's."""

    def __init__(self, name: str, act: Callable[[ModuleType], None]):
        self._name, self._act = name, act
        self._within = threading.local()
        if name in sys.modules:
            act(sys.modules[name])
        else:
            sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Finds the module by everybody else's finders."""
        if name != self._name or getattr(self._within, "on", False):
            return None
        self._within.on = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._within.on = False
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, self)  # type: ignore[assignment]
        return spec

    def done(self, module: ModuleType) -> None:
        """It was imported."""
        waits = self in sys.meta_path
        self.forget()
        if waits:
            self._act(module)

    def forget(self) -> None:
        """Waits no longer."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)


class _Loader:
    """Somebody's loader, which tells when it is done."""

    def __init__(self, loader: Any, waiting: AfterImport):
        self._loader, self._waiting = loader, waiting

    def __getattr__(self, name: str) -> Any:
        if name == "_loader":
            raise AttributeError(name)
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._waiting.done(module)
