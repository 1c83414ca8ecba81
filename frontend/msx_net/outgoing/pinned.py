"""HTTP requests to addresses that were checked, whatever the names of their hosts lead to meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from msx_net.outgoing.addresses import Address

if TYPE_CHECKING:
    import ssl

    import httpx

MOST_ADDRESSES = 3
"""Addresses of one host that are tried."""
LONGEST_NAME = 253
"""Characters of a host's name (RFC 1035)."""


def host_name(url: httpx.URL) -> str:
    """The host's name as DNS has it, or its address."""
    return url.raw_host.decode("ascii").lower().removesuffix(".")


def is_plain(url: httpx.URL) -> bool:
    """Whether the URL is one of http or https, without a user, whose host has a name."""
    return url.scheme in ("http", "https") and not url.userinfo and 0 < len(host_name(url)) <= LONGEST_NAME


def pinned_client(trusted: ssl.SSLContext, seconds: float) -> httpx.AsyncClient:
    """Uses neither proxies nor `.netrc`, and follows no redirect. `seconds`: to wait for what a host sends; a part
    of them to connect to each address."""
    import httpx

    timeout = httpx.Timeout(seconds, connect=seconds / MOST_ADDRESSES)
    return httpx.AsyncClient(verify=trusted, trust_env=False, timeout=timeout)


async def send(
    client: httpx.AsyncClient,
    method: str,
    url: httpx.URL,
    addresses: list[Address],
    headers: Mapping[str, str],
    content: bytes | None = None,
) -> httpx.Response:
    """The head of the response of the first address that answers; its body is not read. Raises httpx.HTTPError."""
    import httpx

    def request(address: Address) -> httpx.Request:
        """Ask this address; the host's name stands in the head and in TLS."""
        pinned, own = url.copy_with(host=str(address)), {"host": url.netloc.decode("ascii"), "user-agent": "msx-serve"}
        name = {"sni_hostname": host_name(url)}
        return client.build_request(method, pinned, headers={**own, **headers}, content=content, extensions=name)

    *others, last = addresses[:MOST_ADDRESSES]
    for address in others:
        with suppress(httpx.ConnectError, httpx.ConnectTimeout):
            return await client.send(request(address), stream=True)
    return await client.send(request(last), stream=True)


@cache
def trust() -> ssl.SSLContext:
    """The certificates that are trusted. Blocks: it reads them, and imports httpx."""
    import httpx

    logging.getLogger("httpx").setLevel(logging.WARNING)  # it would log whole URLs
    return httpx.create_ssl_context()
