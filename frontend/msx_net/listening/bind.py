"""The socket of a listener, by its address."""

import errno
import socket

from msx_core.start_errors import StartError
from msx_net.connections.listen import bind_unix, listen
from msx_net.listening.address import Address
from msx_net.listening.kept import KEEPS_NONE, KeepsSockets


class ListenError(StartError):
    """An address that cannot be listened on; the message names it and what to do."""


def bind(name: str, address: Address, kept: KeepsSockets = KEEPS_NONE) -> socket.socket:
    """`name` is that of the listener, with which its keys begin. Raises ListenError."""
    try:
        if found := kept.find(kept_name(name, address)):
            found[0].setblocking(False)
            return found[0]
        bound = bind_unix(address.path) if address.is_unix else _bind_tcp(address)
        kept.keep(kept_name(name, address), [bound])
        return bound
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ListenError(
                f"The {name} address {address} is in use by another process: stop it, or set {name}_address to a free "
                "one, in config.properties of the current folder, or in the file of --ts-config. A second server needs "
                "all five addresses of its own: docs/server.md lists them."
            ) from None
        raise ListenError(f"The {name} address {address} cannot be used: {error.strerror or error}.") from None


def kept_name(name: str, address: object) -> str:
    """Name of a listener's sockets; `address` is the configured one, whose port may be 0."""
    return f"{name} {address}"


def _bind_tcp(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    default = 443 if address.scheme == "https" else 80
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio sets TCP_NODELAY for no other number
    return listen(sock, (address.host, default if address.port is None else address.port))
