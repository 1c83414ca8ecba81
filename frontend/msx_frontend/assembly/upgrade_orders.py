"""The Unix socket on which the supervisor takes orders of `msx-serve upgrade`. Only the server's user can open it."""

import logging
import socket
from pathlib import Path
from typing import Any

from msx_frontend.assembly.status_socket import bind_private, short_name
from msx_frontend.supervision.client import SupervisorClient
from msx_frontend.supervision.wire import receive, send

log = logging.getLogger("msx.server")

NAME = "supervisor.sock"


def take_orders(supervisor: SupervisorClient, path: Path) -> None:
    """Logs a warning if the folder cannot have a socket."""
    try:
        with bind_private(path) as bound:
            supervisor.take_orders(bound)
    except OSError as error:
        log.warning("%s cannot be made: %s. msx-serve upgrade does not find this server.", path, error)


def order(path: Path, limit: float, **members: Any) -> dict[str, Any]:
    """Give an order, and return the answer. Raises OSError, EOFError where the server ends meanwhile."""
    with socket.socket(socket.AF_UNIX) as connection, short_name(path) as short:
        connection.settimeout(limit)
        connection.connect(short)
        send(connection, members)
        return receive(connection)[0]
