"""Which of a rank table's hosts are this machine."""

import socket


def is_local(host: str, port: int = 0) -> bool:
    """Whether the address can be bound here."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, UnicodeError):
        return False
    return True
