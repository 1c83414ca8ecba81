"""TorchServe's Python package, as its handlers know it, over MSX's SDK.

Modules refer to each other relatively: this package is `ts` in workers, and `msx_torchserve.packages.ts` to its tests.
"""

from .version import __version__

__all__ = ["__version__"]
