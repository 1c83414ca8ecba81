"""The server's configuration: its keys, and where their values come from."""

from msx_frontend.config.server_config import (
    ModelDefaults,
    Models,
    NamedSnapshot,
    ServerConfig,
    ServerConfigError,
    Snapshot,
)

__all__ = ["ModelDefaults", "Models", "NamedSnapshot", "ServerConfig", "ServerConfigError", "Snapshot"]
