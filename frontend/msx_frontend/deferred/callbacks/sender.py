"""Sends one callback: to a host that the operator allows, at an address that was checked."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from msx_frontend.deferred.callbacks.secrets import Signer
from msx_net.outgoing.addresses import Address, resolved
from msx_net.outgoing.allowed import AllowedHosts
from msx_net.outgoing.pinned import host_name, is_plain, pinned_client, send, trust

if TYPE_CHECKING:
    import httpx

NAME_THREADS = 8
"""Names that are resolved at a time."""
HEADERS = {"content-type": "application/json", "accept-encoding": "identity"}


class CallbackAnswer(NamedTuple):
    """The response to a callback; `error` says why there is none, in a sentence for the job's owner."""

    status: int | None
    error: str = ""
    again_after: float = 0.0
    """Seconds that the receiver asks to wait for."""

    @property
    def is_taken(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class NotSent(Exception):
    """The message says why, without an address, which a client could look for so."""


class CallbackSender:
    """Follows no redirect, and uses no proxy. A connection goes to the address that was checked, whatever the name
    leads to meanwhile."""

    def __init__(self, hosts: AllowedHosts, signer: Signer, seconds: float) -> None:
        """`seconds`: for one try, from the look for its address to the head of the response (callback_timeout)."""
        self._hosts, self._signer, self._seconds = hosts, signer, seconds
        self._threads = ThreadPoolExecutor(NAME_THREADS, "msx-callback-name")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def send(self, id: str, url: str, body: bytes) -> CallbackAnswer:
        try:
            return await asyncio.wait_for(self._send(id, url, body), self._seconds)
        except asyncio.TimeoutError:
            return CallbackAnswer(None, f"it did not answer within callback_timeout, {self._seconds:g} s")
        except NotSent as error:
            return CallbackAnswer(None, str(error))

    async def _send(self, id: str, url: str, body: bytes) -> CallbackAnswer:
        trusted = await asyncio.get_running_loop().run_in_executor(self._threads, trust)
        import httpx

        headers = {**HEADERS, **self._signer.headers(id, int(time.time()), body)}
        try:
            parsed = httpx.URL(url)
            addresses = await self._addresses(parsed)
            async with pinned_client(trusted, self._seconds) as client:
                response = await send(client, "POST", parsed, addresses, headers, body)
                await response.aclose()  # its body is not read
        except httpx.TimeoutException:
            raise NotSent("its host does not answer") from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise NotSent(f"it cannot be sent ({type(error).__name__})") from None
        return CallbackAnswer(response.status_code, again_after=_seconds(response.headers.get("retry-after", "")))

    async def _addresses(self, url: httpx.URL) -> list[Address]:
        """The addresses of the host, all of which may be asked. Raises NotSent."""
        name = host_name(url)
        if not is_plain(url) or not self._hosts.has(name):
            raise NotSent(not_allowed(name))
        found = await asyncio.get_running_loop().run_in_executor(self._threads, resolved, name)
        if not found:
            raise NotSent(f"{name} has no address")
        if not all(map(self._hosts.may_reach, found)):
            raise NotSent(f"{name} is of this machine or a private network, which callback_hosts does not name")
        return found


def not_allowed(host: str) -> str:
    return f"{host} is not in callback_hosts of the server's config.properties"


def _seconds(text: str) -> float:
    """Retry-After in seconds; a date is passed over."""
    return float(text) if text.isdecimal() and len(text) < 10 else 0.0
