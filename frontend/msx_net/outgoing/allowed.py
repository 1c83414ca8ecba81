"""Hosts that the server may ask on behalf of clients."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from msx_net.outgoing.addresses import Address, address_of, is_metadata_service, is_public
from msx_net.page_guard import matches_host

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def network_of(entry: str) -> Network | None:
    """The network, of one address where no length is given; None for the name of a host. Raises ValueError for a
    network that there is not."""
    if "/" in entry or ":" in entry:
        return ipaddress.ip_network(entry, strict=False)
    return None if address_of(entry) is None else ipaddress.ip_network(entry)


class AllowedHosts:
    """Names of hosts, with a `*` at their beginning for any text, addresses and networks.

    An address that is not of the Internet, also one to which an allowed name leads, has to be in an allowed network.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        """Raises ValueError."""
        self._names: list[str] = []
        self._networks: list[Network] = []
        for entry in entries:
            if (network := network_of(entry)) is None:
                self._names.append(entry.lower())
            else:
                self._networks.append(network)

    def __bool__(self) -> bool:
        return bool(self._names or self._networks)

    def has(self, host: str) -> bool:
        """Whether a URL's host, in lower case, is allowed by its name, or as an address."""
        address = address_of(host)
        return (address is not None and self._is_named(address)) or any(matches_host(host, one) for one in self._names)

    def may_reach(self, address: Address) -> bool:
        """Whether a host that is allowed may have this address."""
        if self._is_named(address):
            return True
        return is_public(address) and not address.is_multicast and not is_metadata_service(address)

    def _is_named(self, address: Address) -> bool:
        return any(address in network for network in self._networks)
