"""The settings of connections, for msx_net."""

from dataclasses import fields

from msx_frontend.config import ServerConfig
from msx_net.connections.limits import ConnectionLimits


def connection_limits(config: ServerConfig) -> ConnectionLimits:
    return ConnectionLimits(**{one.name: getattr(config, one.name) for one in fields(ConnectionLimits)})
