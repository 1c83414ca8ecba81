"""The redirects of a hub, which its library follows: where to, and to which addresses."""

import re
import sys
from collections.abc import Sequence
from typing import Any
from urllib.parse import urljoin

from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.archives.hub.remote import HubError
from msx_frontend.archives.schemes import HF, MODELSCOPE
from msx_frontend.management_errors import ArchiveNotFound, DownloadFailed
from msx_net.outgoing.addresses import Place, address_of, is_private, places, proxies, refused, resolved

OWN = {HF: ("huggingface.co", "hf.co"), MODELSCOPE: ("modelscope.cn", "modelscope.ai")}
"""Domains in which hubs keep their files, over https: whoever allows the hub allows them."""


class Redirects:
    """`check` is a hook of httpx and of requests, called with each reply before its redirect is followed; `watch` sees
    every connection of this process before it is made, whatever a name meant when it was looked up."""

    def __init__(self, scheme: str, endpoint: str, allowed: Sequence[str]) -> None:
        """`endpoint`: the URL of the hub, which may be in a private network; `allowed`: the patterns of `allowed_urls`.
        Blocks."""
        self._own, self._endpoint = OWN[scheme], endpoint
        self._allowed = [re.compile(pattern) for pattern in allowed]
        self._hub, self._proxies = places(endpoint), proxies()
        self._private = True

    def begin(self) -> None:
        """A request to the hub itself."""
        self._private = True

    def check(self, reply: Any, *_: object, **__: object) -> None:
        """Raises HubError for a redirect that is not allowed."""
        location = reply.headers.get("location")
        if not (location and 300 <= reply.status_code < 400):
            return
        here, there = ArchiveUrl.split(str(reply.url)), self._target(str(reply.url), location)
        self._private = self._private and is_private(resolved(here.host))
        self._check_url(there)
        for place in places(there.text):
            self._check_place(place)

    def watch(self) -> None:
        """Watch redirects from now on, for ever: call it in a process that does nothing but fetch."""
        sys.addaudithook(self._connecting)

    def _connecting(self, event: str, args: tuple[Any, ...]) -> None:
        if event != "socket.connect" or not isinstance(args[1], tuple):
            return
        address = address_of(str(args[1][0]))
        if address is not None and (place := (address, args[1][1])) not in self._proxies:
            self._check_place(place)

    def _target(self, here: str, location: str) -> ArchiveUrl:
        try:
            found = ArchiveUrl.split(urljoin(here, location))
        except (ValueError, DownloadFailed):
            raise HubError("it redirects to what is not a URL") from None
        if found.parts is None or found.parts.scheme not in ("http", "https"):
            raise HubError(f"it redirects to {found.shown}")
        return found

    def _check_url(self, there: ArchiveUrl) -> None:
        assert there.parts is not None
        own = there.parts.scheme == "https" and any(f".{there.host}".endswith(f".{domain}") for domain in self._own)
        if own or urljoin(there.text, "/") == urljoin(self._endpoint, "/"):
            return
        try:
            there.check_allowed(self._allowed)
        except ArchiveNotFound:
            raise HubError(
                f"it redirects to {there.shown}, which allowed_urls does not allow: add a pattern for it"
            ) from None

    def _check_place(self, place: Place) -> None:
        if reason := refused(place[0], private=self._private or place in self._hub):
            raise HubError(reason)
