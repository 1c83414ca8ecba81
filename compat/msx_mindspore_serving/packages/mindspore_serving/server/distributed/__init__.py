"""Servables whose models have a part on each of several ranks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agents import startup_agents
    from .declare import declare_servable
    from .start import start_servable

_HOMES = {"declare_servable": "declare", "start_servable": "start", "startup_agents": "agents"}

__all__ = ["declare_servable", "start_servable", "startup_agents"]


def __getattr__(name: str) -> Any:
    """A servable, a server's script and an agent's script need one each: it is imported when it is used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
