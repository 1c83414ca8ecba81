"""The class that handler authors subclass."""

from msx_core.handler import (
    Data,
    Handler,
)

__all__ = [
    "Data",
    "Handler",
]
