"""The names that start scripts, servables and clients of MindSpore Serving import. MSX answers behind them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agent import startup_agents
    from .client import ClientRequest, Parameters

_HOMES = {"startup_agents": "agent", "ClientRequest": "client", "Parameters": "client"}

__all__ = ["ClientRequest", "Parameters", "startup_agents"]


def __getattr__(name: str) -> Any:
    """llm-serving's names, which a servable does not need: they are imported when they are used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
