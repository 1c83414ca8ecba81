"""The gRPC side of a server, put together. Whoever imports this imports protobuf."""

from __future__ import annotations

from functools import partial

from msx_frontend.apis.kserve.grpc.open_inference import TORCHSERVE_PACKAGE, OpenInferenceService
from msx_frontend.assembly.grpc_server import GrpcServer
from msx_frontend.assembly.http_front import HttpFront
from msx_frontend.config import ServerConfig
from msx_frontend.held_bytes import HeldBytes
from msx_frontend.keys.tokens import Tokens
from msx_frontend.models.health import Health
from msx_frontend.models.registry import Registry
from msx_frontend.net.grpc.admission import Admission
from msx_frontend.net.grpc.context import LogsCalls
from msx_frontend.net.grpc.status import details, standard_code
from msx_frontend.net.tls.listeners import ServerTls


def make_server(
    config: ServerConfig,
    registry: Registry,
    health: Health,
    front: HttpFront,
    tokens: Tokens | None,
    access_log: LogsCalls,
    tls: ServerTls | None,
    held: HeldBytes,
) -> GrpcServer:
    """Of `front`, gRPC has the model API and the repository."""
    keys = Admission(tokens, "inference"), Admission(tokens, "management")
    make = partial(OpenInferenceService, registry, health, front.repository, *keys, access_log=access_log, held=held)
    services = [make()]
    if config.ts_open_inference_protocol:
        torchserve = partial(make, package=TORCHSERVE_PACKAGE, code_of=standard_code, details_of=details)
        services.append(torchserve(typed_outputs=True))
    return GrpcServer(config, registry, front.model_api, health, tokens, access_log, tls, services, held)
