"""An API of another package: its families over HTTP and its services over gRPC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msx_core.held_bytes import HeldBytes
from msx_frontend.config import ServerConfig
from msx_frontend.installed_plugins import PluginError, load_plugins
from msx_frontend.models.registry import Registry
from msx_net.http.family import Family

if TYPE_CHECKING:
    from msx_net.grpc.context import LogsCalls
    from msx_net.grpc.service import Service

GROUP = "msx.apis"
"""Entry points whose values are `ServedApi`s."""


class MakesFamilies(Protocol):
    def __call__(self, config: ServerConfig, registry: Registry, /) -> Sequence[Family]: ...


class MakesServices(Protocol):
    def __call__(
        self, config: ServerConfig, registry: Registry, access_log: LogsCalls | None, held: HeldBytes, /
    ) -> Sequence[Service]: ...


class ServedApi(NamedTuple):
    """Both functions are called once a server, the second when gRPC is imported.

    `config` holds limits, `held` counts bytes of bodies.
    """

    families: MakesFamilies
    services: MakesServices


def installed_apis() -> list[ServedApi]:
    """APIs of installed packages, by name. Raises PluginError."""
    return [_checked(plugin.label, plugin.value) for plugin in load_plugins(GROUP)]


def _checked(label: str, value: object) -> ServedApi:
    if not isinstance(value, ServedApi):
        raise PluginError(f"The plugin {label} is not a msx_frontend.plugins.families.ServedApi.")
    return value
