"""Runs at the start of every Python with `TWILL` or `TWILL_COLLECT` set: has Twill switched on as soon as Triton was imported.

It imports nothing of Twill before, so that a process without Triton pays nothing. Whatever fails here is one line on stderr.
"""

import importlib.util
import os
import sys
import threading
from importlib.machinery import PathFinder


def _is_here(place):
    try:
        return os.path.samefile(place, os.curdir)
    except OSError:
        # The working directory was removed.
        return False


# Python has not added the program's own folder yet, nor the working directory of `python -c` and `-m`; an entry of
# PYTHONPATH that is empty stands for that too.
_PLACES = [os.path.dirname(os.path.abspath(__file__))]
_PLACES[:0] = [place for place in sys.path if os.path.isabs(place) and os.path.isdir(place) and not _is_here(place)]


class _Loader:
    """Triton's loader, which switches Twill on when it is done."""

    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        if name == "_loader":
            raise AttributeError(name)
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        if _Finder in sys.meta_path:
            sys.meta_path.remove(_Finder)
        _switch_on()


class _Finder:
    """Finds Triton by everybody else's finders, until it was imported."""

    within = threading.local()

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "triton" or getattr(cls.within, "on", False):
            return None
        cls.within.on = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            cls.within.on = False
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader)
        return spec


def _find_package():
    """Imports twill_gpu from where it is installed: a file of that name next to a program is not Twill."""
    if "twill_gpu" in sys.modules:
        return
    spec = PathFinder.find_spec("twill_gpu", _PLACES)
    if spec is None:
        raise ImportError("twill_gpu is not installed")
    package = sys.modules["twill_gpu"] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(package)
    except BaseException:
        del sys.modules["twill_gpu"]
        raise


def _switch_on():
    try:
        _find_package()
    except Exception as error:
        _say(f"twill: switched off: {error}")
        return
    try:
        from twill_gpu.collecting import record_if_asked

        record_if_asked()
    except Exception as error:
        _say(f"twill: nothing is collected: {error}")
    try:
        from twill_gpu.activation import install_with
        from twill_gpu.activation.settings import Settings

        settings = Settings.of_environment()
        if settings is not None:
            install_with(settings)
    except Exception as error:
        _say(f"twill: switched off: {error}")


def _say(text):
    try:
        print(text, file=sys.stderr)
    except Exception:
        pass


if "triton" in sys.modules:
    _switch_on()
else:
    sys.meta_path.insert(0, _Finder)
