"""The server as scripts set it up."""

from . import context

__all__ = ["context"]
