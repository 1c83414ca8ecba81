"""Images behind URLs that clients name: which hosts and addresses are asked, and how much is read of them."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from msx_core.text_limits import too_much
from msx_frontend.archives.addresses import Address, is_metadata_service, is_public, resolved
from msx_frontend.generation.images.limits import ImageLimits
from msx_net.page_guard import matches_host

if TYPE_CHECKING:
    import ssl

    import httpx

MOST_REDIRECTS = 3
MOST_ADDRESSES = 3
"""Addresses of one host that are tried."""
AT_ONCE = 32
"""Images that are fetched at a time, for all clients."""
NAME_THREADS = 8
"""Names that are resolved at a time."""
LONGEST_NAME = 253
"""Characters of a host's name (RFC 1035)."""
_REDIRECT = (301, 302, 303, 307, 308)
_CHUNK = 1 << 16


class NotFetched(Exception):
    """The message says why: nothing of what the host answered, nor its address, which a client could look for so."""


class Room:
    """Bytes of the images of one request that are fetched. `hold` counts them for the server."""

    def __init__(self, limits: ImageLimits, hold: Callable[[int], None]) -> None:
        self._limits, self._hold, self._come = limits, hold, 0

    def add(self, size: int, whole: int) -> None:
        """`size` more bytes have come, or are announced, of an image that has `whole`. Raises NotFetched."""
        limits = self._limits
        self._come += size
        if whole > limits.size:
            raise NotFetched(too_much("bytes", whole, limits.size, "max_image_size"))
        if self._come > limits.request_size:
            raise NotFetched(f"all images: {too_much('bytes', self._come, limits.request_size, 'max_request_size')}")
        self._hold(self._come)


class ImageFetcher:
    """Asks hosts of `allowed_image_hosts` alone, also in redirects.

    A host that is named in full may be of a private network; one that `*` matches may not, nor is a metadata service of
    clouds ever asked. A connection goes to the address that was checked, whatever the name leads to meanwhile. Neither
    proxies nor `.netrc` are used.
    """

    def __init__(self, limits: ImageLimits) -> None:
        self._limits = limits
        self._threads = ThreadPoolExecutor(NAME_THREADS, "msx-image-name")
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def fetch(self, url: str, room: Room) -> bytes:
        """Raises NotFetched."""
        seconds = self._limits.seconds
        try:
            return await asyncio.wait_for(self._fetch(url, room), seconds)
        except asyncio.TimeoutError:
            raise NotFetched(f"it did not come within image_fetch_timeout, {seconds:g} s") from None

    async def _fetch(self, url: str, room: Room) -> bytes:
        loop = asyncio.get_running_loop()
        async with self._turns:
            httpx = await loop.run_in_executor(self._threads, importlib.import_module, "httpx")
            context = await loop.run_in_executor(self._threads, _trust)
            try:
                time = httpx.Timeout(self._limits.seconds, connect=self._limits.seconds / MOST_ADDRESSES)
                async with httpx.AsyncClient(verify=context, trust_env=False, timeout=time) as client:
                    return await self._follow(client, httpx.URL(url), room)
            except httpx.TimeoutException:
                raise NotFetched("its host does not answer") from None
            except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, ValueError) as error:
                raise NotFetched(f"it cannot be fetched ({type(error).__name__})") from None

    async def _follow(self, client: httpx.AsyncClient, url: httpx.URL, room: Room) -> bytes:
        for _ in range(MOST_REDIRECTS + 1):
            reply = await self._open(client, url, await self._addresses(url))
            try:
                if reply.status_code not in _REDIRECT:
                    return await _read(reply, room)
                url = url.join(reply.headers.get("location", ""))
            finally:
                await reply.aclose()
        raise NotFetched(f"it redirects more than {MOST_REDIRECTS} times")

    async def _addresses(self, url: httpx.URL) -> list[Address]:
        """The addresses of the host, all of which may be asked. Raises NotFetched."""
        name = _name(url)
        if url.scheme not in ("http", "https") or url.userinfo or not 0 < len(name) <= LONGEST_NAME:
            raise NotFetched("expected a URL of http or https, without a user")
        if not any(matches_host(name, host) for host in self._limits.hosts):
            raise NotFetched(f"{name} is not in allowed_image_hosts of the server's config.properties")
        found = await asyncio.get_running_loop().run_in_executor(self._threads, resolved, name)
        if not found:
            raise NotFetched(f"{name} has no address")
        named = "*" not in name and name in self._limits.hosts
        if reason := next(filter(None, (_refusal(address, named=named) for address in found)), ""):
            raise NotFetched(f"{name} {reason}")
        return found

    async def _open(self, client: httpx.AsyncClient, url: httpx.URL, addresses: list[Address]) -> httpx.Response:
        """Connect to the first address that answers. Raises httpx.HTTPError."""
        import httpx

        tried = addresses[:MOST_ADDRESSES]
        for address in tried[:-1]:
            with suppress(httpx.ConnectError, httpx.ConnectTimeout):
                return await client.send(_request(client, url, address), stream=True)
        return await client.send(_request(client, url, tried[-1]), stream=True)


def _name(url: httpx.URL) -> str:
    """The host's name as DNS has it, or its address."""
    return url.raw_host.decode("ascii").lower().removesuffix(".")


def _refusal(address: Address, *, named: bool) -> str:
    """The reason why the address is not asked, or ""."""
    if is_metadata_service(address):
        return "is a metadata service of clouds, which is never asked"
    if named or is_public(address):
        return ""
    return "is of a private network: only a host that allowed_image_hosts names in full may be"


def _request(client: httpx.AsyncClient, url: httpx.URL, address: Address) -> httpx.Request:
    """Request the URL of this address; the host's name stands in the head and in TLS."""
    headers = {
        "host": url.netloc.decode("ascii"),
        "user-agent": "msx-serve",
        "accept": "image/*",
        "accept-encoding": "identity",
    }
    pinned = url.copy_with(host=str(address))
    return client.build_request("GET", pinned, headers=headers, extensions={"sni_hostname": _name(url)})


async def _read(reply: httpx.Response, room: Room) -> bytes:
    if reply.status_code != 200:
        raise NotFetched(f"its host answers with HTTP {reply.status_code}")
    announced = reply.headers.get("content-length", "")
    room.add(0, int(announced) if announced.isdecimal() else 0)
    data = bytearray()
    async for chunk in reply.aiter_raw(_CHUNK):
        data += chunk
        room.add(len(chunk), len(data))
    return bytes(data)


@cache
def _trust() -> ssl.SSLContext:
    """The certificates that downloads trust. Blocks: it reads them."""
    import httpx

    logging.getLogger("httpx").setLevel(logging.WARNING)  # it would log whole URLs
    return httpx.create_ssl_context()
