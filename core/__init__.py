"""The MRN Lab library: corpora, encoders, STL, MTL and MRN training. No pages, no process management.

Importing this package imports nothing heavy: ask for what you need (`core.config`, `core.training`, ...).
"""

__version__ = "0.1.0"
__all__ = ["__version__"]
