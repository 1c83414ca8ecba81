"""Where the nodes of a cluster reach this machine."""

import socket


def own_address(towards: str) -> str:
    """The address that this machine has on the way to `towards`, host:port. No packet is sent. Raises OSError."""
    host, _, port = towards.rpartition(":")
    family, kind, *_, address = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(address)
        return str(probe.getsockname()[0])
