"""`model_archiver.version`: MSX's."""

from msx_archiver.output import own_version

__version__ = own_version()
