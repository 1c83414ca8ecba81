"""Modules and names for start scripts and servables."""

from importlib import import_module
from typing import Any

_MODULES = ("distributed", "master", "register")
_HOMES = {
    "ServableStartConfig": "start_config",
    "SSLConfig": "ssl_config",
    "start_servables": "starting",
    "start_grpc_server": "starting",
    "start_restful_server": "starting",
    "stop": "starting",
}

__all__ = [*_MODULES, *_HOMES]


def __getattr__(name: str) -> Any:
    """A servable needs nothing of what a start script needs, and the other way round: each is imported when it is used.

    All public names of `register` and `distributed` are names of this package, too.
    """
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    for module in (import_module(f".{one}", __name__) for one in ("register", "distributed") if name[:1] != "_"):
        if name in getattr(module, "__all__", ()):
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
