"""A file behind an HTTP URL, as a stream of bytes."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.archives.aws_signature import sign
from msx_frontend.management_errors import ArchiveNotFound, DownloadFailed
from msx_net.outgoing.addresses import Address, Place, address_of, is_private, proxies, refused, resolved

if TYPE_CHECKING:
    import httpx

CHUNK = 1 << 20
CONNECT, SILENCE = 10.0, 60.0
"""Time limits in seconds: to connect, and between two bytes."""
MOST_REDIRECTS = 5
_REDIRECT = (301, 302, 303, 307, 308)

CheckSize = Callable[[int], None]


class HttpSource:
    """Follows redirects to URLs that `check` allows, from a public host to public ones only. Uses proxies and `.netrc`
    like curl."""

    def __init__(self, check: Callable[[ArchiveUrl], None], env: Mapping[str, str]) -> None:
        self._check, self._env = check, env

    async def read(self, url: ArchiveUrl, check_size: CheckSize, *, signed: bool) -> AsyncGenerator[bytes, None]:
        """Chunks of up to `CHUNK` bytes; `check_size` gets the announced size. Raises DownloadFailed."""
        httpx = await asyncio.to_thread(importlib.import_module, "httpx")
        client = await asyncio.to_thread(_new_client)
        try:
            async with client, aclosing(self._follow(client, url, check_size, signed)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, UnicodeError) as error:
            raise DownloadFailed(url.shown, _reason(error)) from None

    async def _follow(
        self, client: httpx.AsyncClient, url: ArchiveUrl, check_size: CheckSize, signed: bool
    ) -> AsyncGenerator[bytes, None]:
        there, private, ways = url, True, await asyncio.to_thread(proxies)
        for _ in range(MOST_REDIRECTS + 1):
            addresses = await asyncio.to_thread(resolved, there.host)
            _check_addresses(there, addresses, private=private)
            async with client.stream("GET", there.text, headers=self._headers(there, signed)) as reply:
                addresses += _connected(reply, ways)  # again, because the name may have changed
                _check_addresses(there, addresses, private=private)
                private = private and is_private(addresses)
                if reply.status_code not in _REDIRECT:
                    _check_reply(url, reply, check_size)
                    async for chunk in reply.aiter_raw(CHUNK):
                        yield chunk
                    return
                there = self._redirected(url, there, reply)
        raise DownloadFailed(url.shown, f"it redirects more than {MOST_REDIRECTS} times")

    def _headers(self, url: ArchiveUrl, signed: bool) -> dict[str, str]:
        """Request the file without an encoding, because gzip is a format of archives."""
        return {"accept-encoding": "identity", **(sign(url, self._env) if signed else {})}

    def _redirected(self, url: ArchiveUrl, there: ArchiveUrl, reply: httpx.Response) -> ArchiveUrl:
        try:
            target = urljoin(there.text, reply.headers.get("location", ""))
        except ValueError:
            raise DownloadFailed(url.shown, "it redirects to what is not a URL") from None
        if target.partition("://")[0].lower() not in ("http", "https"):
            raise DownloadFailed(url.shown, f"it redirects to {ArchiveUrl.split(target).shown}")
        redirected = ArchiveUrl.split(target)
        self._check(redirected)
        return redirected


def _connected(reply: httpx.Response, ways: set[Place]) -> list[Address]:
    """The address from which the reply comes; none where that is a proxy's, or a file's."""
    at = reply.extensions["network_stream"].get_extra_info("server_addr")
    address = address_of(str(at[0])) if isinstance(at, tuple) else None
    return [] if address is None or (address, at[1]) in ways else [address]


def _check_addresses(url: ArchiveUrl, addresses: list[Address], *, private: bool) -> None:
    """`private`: addresses of private networks may be asked. Raises ArchiveNotFound."""
    if reason := next(filter(None, (refused(address, private=private) for address in addresses)), ""):
        raise ArchiveNotFound(f"Given URL {url.shown} does not match any allowed URL(s): {reason}.")


def _check_reply(url: ArchiveUrl, reply: httpx.Response, check_size: CheckSize) -> None:
    if reply.status_code != 200:
        raise DownloadFailed(url.shown, f"HTTP {reply.status_code} {reply.reason_phrase}".rstrip())
    announced = reply.headers.get("content-length", "0")
    check_size(int(announced) if announced.isdecimal() else 0)


def _new_client() -> httpx.AsyncClient:
    """Blocks: reads certificates and .netrc."""
    import httpx

    logging.getLogger("httpx").setLevel(logging.WARNING)  # it would log whole URLs
    timeout = httpx.Timeout(SILENCE, connect=CONNECT)
    return httpx.AsyncClient(timeout=timeout, headers={"user-agent": "msx-serve"})


def _reason(error: Exception) -> str:
    import httpx

    if isinstance(error, httpx.TimeoutException):
        return f"no answer within {CONNECT if isinstance(error, httpx.ConnectTimeout) else SILENCE:g} s"
    return str(error) or str(type(error).__name__)
