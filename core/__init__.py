"""The MRN Lab library: corpora, encoders, STL, MTL and MRN training. No pages, no process management.

`docs/library.md` shows what a notebook needs. Importing this package imports nothing else: each of its names
comes from its module on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.config import RunConfig as RunConfig
    from core.config.sweep import expand as expand
    from core.errors import MRNLabError as MRNLabError
    from core.library import Laboratory as Laboratory
    from core.library import StoredRun as StoredRun
    from core.library import describe as describe
    from core.library import train as train

__version__ = "0.2.0"

_MODULES = {
    "Laboratory": "core.library",
    "MRNLabError": "core.errors",
    "RunConfig": "core.config",
    "StoredRun": "core.library",
    "describe": "core.library",
    "expand": "core.config.sweep",
    "train": "core.library",
}
__all__ = ["__version__", *_MODULES]

if not TYPE_CHECKING:  # a type checker would take every name for one of this package

    def __getattr__(name):
        if name not in _MODULES:
            raise AttributeError(f"module 'core' has no attribute '{name}'")
        value = globals()[name] = getattr(import_module(_MODULES[name]), name)
        return value

    def __dir__():
        return sorted({*globals(), *_MODULES})
