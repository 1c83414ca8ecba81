"""Metadata services of clouds, which hand out credentials to every process on a machine: the server never asks them."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.management_errors import ArchiveNotFound

_SERVICES = {ipaddress.ip_address(text) for text in ("fd00:ec2::254", "100.100.100.200", "168.63.129.16")}
"""AWS, Alibaba, Azure; all others have link-local addresses."""


async def check_host(url: ArchiveUrl) -> None:
    """Check the host before a request. A name that only a proxy can resolve is allowed. Raises ArchiveNotFound."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(url.host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return
    for *_, address in found:
        check_address(url, address)


def check_address(url: ArchiveUrl, address: object) -> None:
    """Check the address again after connecting, because the name may have changed. Raises ArchiveNotFound."""
    if not isinstance(address, tuple):
        return
    found = ipaddress.ip_address(str(address[0]).partition("%")[0])
    real = getattr(found, "ipv4_mapped", None) or found
    if real.is_link_local or real in _SERVICES:
        raise ArchiveNotFound(
            f"Given URL {url.shown} does not match any allowed URL(s): {real} is a metadata service of clouds, which "
            "is never asked."
        )
