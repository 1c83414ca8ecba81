"""Keep web pages of others away from management where no key does it: a browser sends what any page asks it to send.

The rule for origins is that of Go's net/http.CrossOriginProtection; the one for names is against DNS rebinding.
"""

import ipaddress
from collections.abc import Callable, Iterable

from msx_core.service_errors import ForeignHost, ForeignPage

SAFE = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing; whether a page may read their replies is decided by CORS."""
LOCALHOST = ("localhost", "*.localhost")
"""Names that browsers take for a loopback address without asking DNS (RFC 6761, 6.3)."""

Header = Callable[[bytes], str]
"""The value of a header by its name in lower case; "" if it is missing. Browsers send all that are judged here."""


class PageGuard:
    """A request without any of the headers comes from no browser, and passes."""

    def __init__(self, trusts: Callable[[str], bool], hosts: Iterable[str]) -> None:
        """`trusts` says of an origin ("" is unknown) whether its pages may manage the server; `hosts` are the names of
        the server, with a `*` at their beginning for any text."""
        self._trusts = trusts
        self._hosts = tuple(host.lower() for host in (*LOCALHOST, *hosts))

    def check(self, method: str, header: Header, server: tuple[str, int] | None) -> None:
        """`server` is the server's end of the connection; None for a Unix socket. Raises ForeignHost, ForeignPage."""
        host = header(b"host")
        if server is not None and is_loopback(server[0]) and not self._is_own(host_name(host)):
            raise ForeignHost(host)
        if method not in SAFE:
            self._check_page(header, host)

    def _check_page(self, header: Header, host: str) -> None:
        """Raises ForeignPage. Browsers say Sec-Fetch-Site to servers on this machine and with TLS; behind a proxy that
        changes Host only it tells which pages are the server's own."""
        origin, site = header(b"origin"), header(b"sec-fetch-site").lower()
        if self._trusts(origin):
            return
        if site and site not in ("same-origin", "none"):
            raise ForeignPage("Sec-Fetch-Site", site, origin)
        if origin and not site and not _is_same(origin, (host, header(b"x-forwarded-host"))):
            raise ForeignPage("Origin", origin, origin)

    def _is_own(self, name: str) -> bool:
        return not name or is_address(name) or any(matches_host(name, host) for host in self._hosts)


def is_loopback(host: str) -> bool:
    """Whether an address, as a socket names it, is one that only this machine reaches."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def is_address(name: str) -> bool:
    """Whether it is an IP address in the usual form, for which no DNS is asked."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def host_name(host: str) -> str:
    """The name or address in a Host header, in lower case, without the port and the dot of the root."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.rpartition(":")[0] or host
    return name.strip().removesuffix(".").lower()


def matches_host(name: str, host: str) -> bool:
    """Whether a name is that of a list, which may have a `*` at its beginning for any text. Both are in lower case."""
    return name.endswith(host[1:]) if host.startswith("*") else name == host


def _is_same(origin: str, hosts: Iterable[str]) -> bool:
    """Whether the page was loaded by one of these names. Its scheme may be that of a proxy, which ends TLS."""
    scheme, _, own = origin.lower().partition("://")
    usual = ":443" if scheme == "https" else ":80"
    return bool(own) and any(own == host.lower().removesuffix(usual) for host in hosts)
