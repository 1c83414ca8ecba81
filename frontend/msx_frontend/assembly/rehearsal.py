"""Checks of a frontend that is to follow another one: what would end its start is found while that one still serves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from socket import socket

from msx_frontend.assembly.start_inputs import INPUTS
from msx_frontend.config import ServerConfig
from msx_net.connections.listen import listen, open_all
from msx_net.grpc.listen import GrpcListen
from msx_net.listening.bind import bind as bind_http
from msx_net.listening.bind import kept_name
from msx_net.listening.kept import KeepsNone, KeepsSockets


class _Tried(KeepsNone):
    """Sockets of another frontend; none is added to them."""

    def __init__(self, kept: KeepsSockets) -> None:
        self._kept, self.is_new = kept, False

    def find(self, name: str) -> list[socket]:
        return self._kept.find(name)

    def keep(self, name: str, sockets: Sequence[socket]) -> None:
        self.is_new = True


async def rehearse(config: ServerConfig, kept: KeepsSockets) -> None:
    """Read what a start reads, and bind the addresses that the other frontend has not; they are free again when this
    returns. Raises StartError or OSError."""
    await asyncio.to_thread(_read_inputs, config)
    with ExitStack() as bound:  # all at a time: two may have the same address
        for name in _http_listeners(config):
            address, tried = getattr(config, f"{name}_address"), _Tried(kept)
            bound.enter_context(bind_http(name, address, tried))
            if address.is_unix and tried.is_new:
                bound.callback(Path(address.path).unlink, missing_ok=True)
        from msx_frontend.assembly.grpc_server import inference_listen, management_listen  # as a start does later

        if config.grpc_transport == "own":  # the other one closes its ports
            for grpc in (inference_listen(config), management_listen(config)):
                for sock in await _try_grpc(grpc, kept):
                    bound.enter_context(sock)


def _read_inputs(config: ServerConfig) -> None:
    for one in INPUTS:
        one.read(config, os.environ)


def _http_listeners(config: ServerConfig) -> Sequence[str]:
    management = [] if config.merged else ["management"]
    return ["inference", *management, *(["metrics"] if config.enable_metrics_api else [])]


async def _try_grpc(grpc: GrpcListen, kept: KeepsSockets) -> list[socket]:
    sockets = kept.find(kept_name(grpc.keys, grpc.target(grpc.port)))
    try:
        return sockets or await open_all(grpc.host, grpc.port, listen)
    except OSError as error:
        raise grpc.refusal(error) from error
