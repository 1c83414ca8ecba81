"""A request as ASGI's scope."""

from __future__ import annotations

import asyncio
import urllib.parse
from typing import Any, NamedTuple

import httptools

from msx_core.service_errors import BadRequest
from msx_net.http.asgi_request import SocketAddress, socket_address
from msx_net.http.v1.incoming import IncomingRequest
from msx_net.http.wire import Scope


class Endpoints(NamedTuple):
    """Both ends of one connection."""

    client: SocketAddress
    server: SocketAddress
    scheme: str


def endpoints(transport: asyncio.Transport) -> Endpoints:
    scheme = "https" if transport.get_extra_info("sslcontext") else "http"
    peer, own = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
    return Endpoints(socket_address(peer), socket_address(own), scheme)


def scope_of(request: IncomingRequest, ends: Endpoints, app_state: dict[str, Any]) -> Scope:
    """Raises BadRequest for a target that is not a path."""
    try:
        url = httptools.parse_url(request.url)
        raw_path: bytes = url.path or b"/"
        path = urllib.parse.unquote(raw_path.decode("ascii"))
    except (httptools.HttpParserInvalidURLError, UnicodeDecodeError):
        raise BadRequest("The target of the request is not a path.") from None
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": request.version,
        "server": ends.server,
        "client": ends.client,
        "scheme": ends.scheme,
        "root_path": "",
        "method": request.method.decode("ascii"),
        "path": path,
        "raw_path": raw_path,
        "query_string": url.query or b"",
        "headers": request.headers,
        "state": dict(app_state),
    }
