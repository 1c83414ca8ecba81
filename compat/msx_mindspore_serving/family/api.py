"""MindSpore Serving's API, as the server loads it: the entry point `mindspore_serving` of the group `msx.apis`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msx_core.held_bytes import HeldBytes
from msx_frontend.plugins.families import Registry, ServedApi, ServerConfig
from msx_mindspore_serving.family.family import mindspore_serving
from msx_mindspore_serving.family.servables import Servables
from msx_net.http.family import Family

if TYPE_CHECKING:
    from msx_net.grpc.context import LogsCalls
    from msx_net.grpc.service import Service


def _families(config: ServerConfig, registry: Registry) -> Sequence[Family]:
    return [mindspore_serving(Servables(registry), config.max_request_size)]


def _services(
    config: ServerConfig, registry: Registry, access_log: LogsCalls | None, held: HeldBytes
) -> Sequence[Service]:
    from msx_mindspore_serving.family.grpc.service import mindspore_serving_service

    return [mindspore_serving_service(Servables(registry), config.max_response_size, access_log, held)]


API = ServedApi(_families, _services)
