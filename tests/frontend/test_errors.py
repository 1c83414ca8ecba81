"""The tables of what each error is in HTTP and gRPC."""

from __future__ import annotations

import http
import re
from collections.abc import Iterator

import grpc
import pytest

from msx_core import service_errors
from msx_core.replies import reply_buffer
from msx_core.service_errors import HandlerFailed, ServiceError, WorkerDied, grpc_code_of
from msx_frontend import management_errors
from msx_frontend.apis.kserve.errors import ManyReplies
from msx_frontend.apis.kserve.repository import Unsupported
from msx_frontend.apis.plugins import app_errors
from msx_frontend.apis.torchserve.grpc import management
from msx_frontend.apis.torchserve.grpc.status import class_name
from msx_frontend.batches import errors as batch_errors
from msx_frontend.deferred import errors as job_errors
from msx_frontend.deferred.callbacks import errors as callback_errors
from msx_frontend.files import errors as file_errors
from msx_frontend.generation import errors as llm_errors
from msx_frontend.graphs.errors import NodeFailed
from msx_frontend.management_errors import WorkersNotStarted
from msx_frontend.models.versions import sleep
from msx_frontend.store.errors import StoreUnavailable
from msx_frontend.workflows import errors as workflow_errors
from msx_mindspore_serving.family.errors import ServingError
from msx_net.grpc import unary_reply
from msx_net.http import head_errors
from msx_net.http.job_reply import ReplyTooLarge
from msx_net.http.v1 import errors as http1_errors
from tests.phrases import worker_died
from tests.retry import told_wait

GRPC_CODES = {code.name for code in grpc.StatusCode}
OURS = ("msx_core", "msx_frontend", "msx_net")
"""The packages that have errors of requests."""

OWN_STATUS = 499
"""The client has left: nginx's number, which http.HTTPStatus does not know."""


def subclasses(of: type[ServiceError]) -> Iterator[type[ServiceError]]:
    yield of
    for one in of.__subclasses__():
        yield from subclasses(one)


OF_CONNECTIONS = {head_errors.__name__, http1_errors.__name__}
"""Why a request is not read to its end."""

TABLES = {module.__name__: module.__doc__ or "" for module in (service_errors, management_errors)}
IN_THE_TABLE = [error for error in subclasses(ServiceError) if error.__module__ in TABLES]


def test_every_module_that_adds_an_error_is_known_here() -> None:
    others = {e.__name__ for e in subclasses(ServiceError) if e.__module__.startswith(OURS)}
    others -= {e.__name__ for e in IN_THE_TABLE}
    others -= {e.__name__ for e in subclasses(ServiceError) if e.__module__ == llm_errors.__name__}
    others -= {e.__name__ for e in subclasses(ServiceError) if e.__module__ == workflow_errors.__name__}
    kserve = {one.__name__ for one in (Unsupported, ManyReplies)}
    grpc_own = {unary_reply.ResponseTooLarge.__name__, management.Disabled.__name__}
    others -= {ServingError.__name__}  # MindSpore Serving's own numbers and statuses: see test_grpc beside its API
    others -= {e.__name__ for e in subclasses(ServiceError) if e.__module__ in OF_CONNECTIONS}
    others -= {e.__name__ for e in subclasses(ServiceError) if e.__module__ == app_errors.__name__}
    of_late_work = {module.__name__ for module in (job_errors, callback_errors, file_errors, batch_errors)}
    others -= {e.__name__ for e in subclasses(ServiceError) if e.__module__ in of_late_work}
    assert others == {
        StoreUnavailable.__name__,
        reply_buffer.ReaderTooSlow.__name__,
        ReplyTooLarge.__name__,
        NodeFailed.__name__,
        *(sleep.Asleep.__name__, sleep.CannotSleep.__name__),
        *grpc_own,
        *kserve,
    }


@pytest.mark.parametrize("error", IN_THE_TABLE)
def test_every_error_is_in_the_tree_of_the_module(error: type[ServiceError]) -> None:
    assert error.__name__ in re.findall(r"\w+", TABLES[error.__module__])


@pytest.mark.parametrize("error", IN_THE_TABLE)
def test_every_error_has_a_status_a_type_and_a_grpc_code(error: type[ServiceError]) -> None:
    assert error.status == OWN_STATUS or http.HTTPStatus(error.status) >= 400
    assert error.type.endswith("Exception")
    assert error.grpc_code in GRPC_CODES
    assert error.grpc_code != "OK"


@pytest.mark.parametrize("status", range(400, 600))
def test_a_handlers_status_has_a_grpc_code(status: int) -> None:
    error = HandlerFailed(status, "because")
    assert (error.status, error.message) == (status, "because")
    assert error.grpc_code == grpc_code_of(status)
    assert error.grpc_code in GRPC_CODES - {"OK"}


def test_memory_that_is_out_is_507_as_in_torchserve() -> None:
    assert WorkerDied("It ended.").status == 500
    assert WorkerDied("It ended.", killed=True).status == 507
    assert WorkerDied("It ended.").message == worker_died("It ended.")
    assert WorkersNotStarted("m", "1", "Why.").status == 500
    assert WorkersNotStarted("m", "1", "Why.", out_of_memory=True).status == 507


def test_an_overloaded_server_says_when_to_come_again() -> None:
    assert 1 <= told_wait(dict(service_errors.ServiceUnavailable("full").headers)) <= 2
    assert 4 <= told_wait(dict(service_errors.Overloaded("full", wait=4).headers)) <= 8


def test_a_handler_without_room_says_so_too() -> None:
    assert told_wait(dict(service_errors.HandlerFailed(429, "no room").headers)) <= 2
    assert service_errors.HandlerFailed(503, "raised").headers == ()


@pytest.mark.parametrize("error", [*subclasses(ServiceError)])
def test_an_own_type_is_not_torchserves_for_everything(error: type[ServiceError]) -> None:
    made = error.__new__(error)
    assert made.own_type != service_errors.INTERNAL
    assert made.type in (service_errors.INTERNAL, made.own_type)


def test_a_stage_has_an_own_type_and_a_workflows_node_torchserves() -> None:
    refused = HandlerFailed(400, "no pixels")
    node, stage = NodeFailed("n", refused), NodeFailed("n", refused, "x-stage", own=True)
    assert (node.type, stage.type) == (service_errors.INTERNAL, "PredictionException")
    assert NodeFailed("n", WorkerDied("Why."), own=True).type == "WorkerDiedException"
    assert NodeFailed("n", service_errors.ModelNotFound("m"), own=True).type == "ModelNotFoundException"
    assert {class_name(node), class_name(stage)} == {"org.pytorch.serve.http.InternalServerException"}
