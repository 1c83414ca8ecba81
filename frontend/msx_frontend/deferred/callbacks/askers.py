"""Who asks for callbacks: keys, and the addresses of clients that have none."""

from __future__ import annotations

from ipaddress import IPv6Address

from msx_net.outgoing.addresses import address_of

NETWORK = 64
"""Bits of an IPv6 address that tell one network from another: a client has all addresses of its own."""


def asker_of(owner: str, client: str) -> str:
    """`owner`: the name of a key, or ""; `client`: an address with its port, empty over a Unix
    socket."""
    if owner:
        return f"the key {owner}"
    host = client.rpartition(":")[0].strip("[]")
    return f"the address {_network_of(host)}" if host else "clients without an address"


def _network_of(host: str) -> str:
    address = address_of(host)
    if address is None:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    return f"{IPv6Address(int(address) >> (128 - NETWORK) << (128 - NETWORK))}/{NETWORK}"
