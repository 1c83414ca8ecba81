"""Images behind URLs that clients name: which hosts and addresses are asked, and how much is read of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from msx_core.text_limits import too_much
from msx_frontend.generation.images.limits import ImageLimits
from msx_net.outgoing.addresses import Address, is_metadata_service, is_public, resolved
from msx_net.outgoing.pinned import host_name, is_plain, pinned_client, send, trust
from msx_net.page_guard import matches_host

if TYPE_CHECKING:
    import httpx

MOST_REDIRECTS = 3
AT_ONCE = 32
"""Images that are fetched at a time, for all clients."""
NAME_THREADS = 8
"""Names that are resolved at a time."""
_REDIRECT = (301, 302, 303, 307, 308)
_CHUNK = 1 << 16
HEADERS = {"accept": "image/*", "accept-encoding": "identity"}


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
            trusted = await loop.run_in_executor(self._threads, trust)
            import httpx

            try:
                async with pinned_client(trusted, self._limits.seconds) as client:
                    return await self._follow(client, httpx.URL(url), room)
            except httpx.TimeoutException:
                raise NotFetched("its host does not answer") from None
            except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, ValueError) as error:
                raise NotFetched(f"it cannot be fetched ({type(error).__name__})") from None

    async def _follow(self, client: httpx.AsyncClient, url: httpx.URL, room: Room) -> bytes:
        for _ in range(MOST_REDIRECTS + 1):
            reply = await send(client, "GET", url, await self._addresses(url), HEADERS)
            try:
                if reply.status_code not in _REDIRECT:
                    return await _read(reply, room)
                url = url.join(reply.headers.get("location", ""))
            finally:
                await reply.aclose()
        raise NotFetched(f"it redirects more than {MOST_REDIRECTS} times")

    async def _addresses(self, url: httpx.URL) -> list[Address]:
        """The addresses of the host, all of which may be asked. Raises NotFetched."""
        name = host_name(url)
        if not is_plain(url):
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


def _refusal(address: Address, *, named: bool) -> str:
    """The reason why the address is not asked, or ""."""
    if is_metadata_service(address):
        return "is a metadata service of clouds, which is never asked"
    if named or is_public(address):
        return ""
    return "is of a private network: only a host that allowed_image_hosts names in full may be"


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
