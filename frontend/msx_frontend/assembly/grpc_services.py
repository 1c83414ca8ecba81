"""The gRPC services of a server, in one list. Each says which listener has it; health and reflection are on both."""

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from msx_core.held_bytes import HeldBytes
from msx_frontend.apis.kserve.grpc.open_inference import TORCHSERVE_PACKAGE, OpenInferenceService
from msx_frontend.apis.kserve.repository import Repository
from msx_frontend.apis.served_api import ServedApi
from msx_frontend.apis.torchserve.grpc.inference import InferenceService, Pings
from msx_frontend.apis.torchserve.grpc.management import ManagementService, ManagesModels
from msx_frontend.apis.torchserve.grpc.status import details
from msx_frontend.apis.traffic.calls import DividesTraffic
from msx_frontend.apis.traffic.grpc import TrafficService
from msx_frontend.config import ServerConfig
from msx_frontend.models.health import KnowsReadiness
from msx_frontend.models.registry import Registry
from msx_frontend.workflows.by_name import ModelsAndWorkflows
from msx_frontend.workflows.workflow import WorkflowRegistry
from msx_net.grpc.context import LogsCalls
from msx_net.grpc.service import Service
from msx_net.grpc.status import standard_code


class KnowsHealth(Pings, KnowsReadiness, Protocol):
    """Health of the server, as the gRPC services need it."""


class ManagesAll(ManagesModels, DividesTraffic, Protocol):
    """Management of models, as the gRPC services need it."""


def grpc_services(
    config: ServerConfig,
    registry: Registry,
    health: KnowsHealth,
    models: ManagesAll,
    repository: Repository,
    access_log: LogsCalls | None,
    held: HeldBytes,
    workflows: WorkflowRegistry,
    apis: Sequence[ServedApi],
) -> list[Service]:
    open_inference = partial(OpenInferenceService, registry, health, repository, access_log=access_log, held=held)
    services = [
        InferenceService(
            ModelsAndWorkflows(registry, workflows),
            health,
            keys=config.sequence_keys,
            max_response_size=config.max_response_size,
            access_log=access_log,
            held=held,
        ).service(),
        open_inference().service(),
        ManagementService(models, access_log).service(),
        TrafficService(models, access_log).service()._replace(details_of=details),
        *(service for api in apis for service in api.services(config, registry, access_log, held)),
    ]
    if config.ts_open_inference_protocol:
        torchserve = partial(open_inference, package=TORCHSERVE_PACKAGE, code_of=standard_code, details_of=details)
        services.append(torchserve(typed_outputs=True).service())
    return services
