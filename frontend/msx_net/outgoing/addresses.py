"""Addresses that the server does not ask: metadata services of clouds, which hand out credentials to every process on a
machine, and private networks to which a public host redirects."""

import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit
from urllib.request import getproxies

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Place = tuple[Address, int]
"""An address and a port."""

_SERVICES = {
    ipaddress.ip_address(text) for text in ("fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192")
}
"""AWS, Alibaba, Azure, Oracle; all others have link-local addresses."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_INTERNET = ipaddress.IPv6Network("2000::/3")
"""All that is handed out of IPv6. The rest may lead to IPv4 in a private network (RFC 4291, 7915, 8215), or is local to
a site (RFC 3879)."""
_PROTOCOLS = ipaddress.IPv4Network("192.0.0.0/24")
"""RFC 6890: older Pythons take most of it for the Internet's."""
_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


def address_of(text: str) -> Address | None:
    """The address, of IPv4 where IPv6 only wraps it (RFC 4291, 3056, 6052); None for what is not an address."""
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv4Address):
        return found
    return found.ipv4_mapped or found.sixtofour or (_last(found) if found in _NAT64 else found)


def _last(found: ipaddress.IPv6Address) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)


def is_metadata_service(address: Address) -> bool:
    return address.is_link_local or address in _SERVICES


def is_public(address: Address) -> bool:
    """Whether it is an address of the Internet: neither this machine's nor a private network's."""
    return address.is_global and (address in _INTERNET if address.version == 6 else address not in _PROTOCOLS)


def refused(address: Address, *, private: bool) -> str:
    """The reason why the address is not asked, or "". `private`: an address of a private network may be."""
    if is_metadata_service(address):
        return f"{address} is a metadata service of clouds, which is never asked"
    if private or is_public(address):
        return ""
    return f"{address} is of this machine or a private network, to which a public host may not redirect"


def resolved(host: str) -> list[Address]:
    """The addresses of the host; none where only a proxy knows it. Blocks."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [address for *_, at in found if (address := address_of(str(at[0]))) is not None]


def is_private(addresses: Iterable[Address]) -> bool:
    """Whether a host has addresses, all of them of this machine or private networks."""
    return bool(known := list(addresses)) and not any(map(is_public, known))


def proxies() -> set[Place]:
    """Addresses of the environment's proxies, which may be private. Blocks."""
    urls = [text for name, text in getproxies().items() if name != "no"]
    return {place for url in urls for place in places(url if "://" in url else f"http://{url}")}


def places(url: str) -> set[Place]:
    """Where the host of the URL listens. Blocks."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 80)
    except ValueError:  # whoever opens it says so
        return set()
    return {(address, port) for address in resolved(parts.hostname or "")}
