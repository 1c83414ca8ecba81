"""torch-model-archiver's Python package, as build scripts know it, over MSX's.

Modules refer to each other relatively: this package is `model_archiver` to scripts, and
`msx_torchserve.packages.model_archiver` to its tests.
"""

from .model_archiver import ModelArchiver
from .model_archiver_config import ModelArchiverConfig
from .version import __version__

__all__ = ["ModelArchiver", "ModelArchiverConfig", "__version__"]
