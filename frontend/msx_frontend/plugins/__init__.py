"""The names that launchers, accelerators and API families of other packages import: the server's public modules.

docs/plugins.md says of each name how stable it is. Nothing of the server imports this package.
"""

from msx_frontend import __version__ as SERVER_VERSION

__all__ = ["SERVER_VERSION"]
