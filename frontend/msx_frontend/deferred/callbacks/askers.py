"""Who asks for callbacks: keys, and the addresses of clients that have none."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

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
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    if (mapped := address.ipv4_mapped) is not None:
        return str(mapped)
    return f"{IPv6Address(int(address) >> (128 - NETWORK) << (128 - NETWORK))}/{NETWORK}"
