"""The gRPC side of a server, put together. This module imports protobuf."""

from __future__ import annotations

from functools import partial

from msx_frontend.apis.kserve.grpc.open_inference import TORCHSERVE_PACKAGE, OpenInferenceService
from msx_frontend.assembly.context import ServerContext
from msx_frontend.assembly.grpc_server import GrpcServer
from msx_frontend.assembly.http_front import HttpFront
from msx_frontend.net.grpc.admission import Admission
from msx_frontend.net.grpc.status import details, standard_code


def make_server(context: ServerContext, front: HttpFront) -> GrpcServer:
    """Of `front`, gRPC has the model API and the repository."""
    config, registry, health = context.config, context.registry, context.health
    tokens, held = context.keys.tokens, context.held
    calls = context.monitoring.counted_calls(context.access_log) if context.keys.named else context.access_log
    keys = Admission(tokens, "inference"), Admission(tokens, "management")
    make = partial(OpenInferenceService, registry, health, front.repository, *keys, access_log=calls, held=held)
    services = [make()]
    if config.ts_open_inference_protocol:
        torchserve = partial(make, package=TORCHSERVE_PACKAGE, code_of=standard_code, details_of=details)
        services.append(torchserve(typed_outputs=True))
    return GrpcServer(config, registry, front.model_api, health, tokens, calls, context.tls, services, held)
