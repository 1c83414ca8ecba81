"""The limits of connections are the keys of the configuration that have their names."""

from __future__ import annotations

import msgspec

from msx_frontend.config import ServerConfig
from msx_frontend.config.connections import connection_limits
from msx_net.connections.limits import ConnectionLimits


def test_each_limit_is_its_key() -> None:
    assert connection_limits(ServerConfig()) == ConnectionLimits()
    changed = msgspec.structs.replace(ServerConfig(), max_request_headers=7, tls_handshake_timeout=3.0)
    assert connection_limits(changed) == ConnectionLimits(max_request_headers=7, tls_handshake_timeout=3.0)
