"""Checks of a frontend that is to follow another one: what would end its start is found while that one still serves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from socket import socket

from msx_frontend.assembly.start_inputs import INPUTS
from msx_frontend.config import ServerConfig
from msx_net.connections.listen import bind, open_all
from msx_net.grpc.listen import GrpcListen
from msx_net.listening.bind import bind as bind_http
from msx_net.listening.bind import kept_name
from msx_net.listening.kept import KeepsNone, KeepsSockets


class _Tried(KeepsNone):
    """Sockets of another frontend; none is added to them."""

    def __init__(self, kept: KeepsSockets) -> None:
        self._kept = kept

    def find(self, name: str) -> list[socket]:
        return self._kept.find(name)


async def rehearse(config: ServerConfig, kept: KeepsSockets) -> None:
    """Read what a start reads, and bind the addresses that the other frontend has not; they are free again when this
    returns. Raises StartError or OSError."""
    await asyncio.to_thread(_read_inputs, config)
    for name in _http_listeners(config):
        address = getattr(config, f"{name}_address")
        if not address.is_unix:
            bind_http(name, address, _Tried(kept)).close()
    from msx_frontend.assembly.grpc_server import inference_listen, management_listen  # what a start imports later

    if config.grpc_transport == "own":  # the other one closes its ports
        for listen in (inference_listen(config), management_listen(config)):
            await _try_grpc(listen, kept)


def _read_inputs(config: ServerConfig) -> None:
    for one in INPUTS:
        one.read(config, os.environ)


def _http_listeners(config: ServerConfig) -> Sequence[str]:
    management = [] if config.merged else ["management"]
    return ["inference", *management, *(["metrics"] if config.enable_metrics_api else [])]


async def _try_grpc(listen: GrpcListen, kept: KeepsSockets) -> None:
    sockets = kept.find(kept_name(listen.keys, listen.target(listen.port)))
    try:
        sockets = sockets or await open_all(listen.host, listen.port, bind)
    except OSError as error:
        raise listen.refusal(error) from error
    for sock in sockets:
        sock.close()
