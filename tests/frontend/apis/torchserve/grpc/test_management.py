import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
from grpc import StatusCode

from msx_core.service_errors import BadRequest, ModelNotFound, ServiceError
from msx_frontend.apis.torchserve.grpc.management import SERVICE
from msx_frontend.management_errors import ArchiveNotFound, Conflict, ModelApiDisabled, WorkersNotStarted
from msx_net.grpc.messages import POOL, message_class
from tests.frontend.keys.some import OneKey
from tests.frontend.net.grpc.harness import Served, failure, serving

PACKAGE = "org.pytorch.serve.grpc.management"
Response = message_class(f"{PACKAGE}.ManagementResponse")


Ask = Callable[..., Any]


def with_server(test: Callable[[Served, Ask], Awaitable[None]], **settings: Any) -> None:
    async def main() -> None:
        async with (
            serving(**settings) as served,
            grpc.aio.insecure_channel(served.server.management.address) as channel,
        ):

            def ask(method: str, metadata: Any = None, timeout: float | None = None, **fields: Any) -> Any:
                described = POOL.FindServiceByName(SERVICE).FindMethodByName(method)
                request = message_class(described.input_type.full_name)(**fields)
                path = f"/{SERVICE}/{method}"
                call = channel.unary_unary(path, type(request).SerializeToString, Response.FromString)
                return call(request, metadata=metadata, timeout=timeout)

            await asyncio.wait_for(test(served, ask), 120)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("method", "fields", "asked", "text"),
    [
        ("ListModels", {}, ("models", {}), '{\n  "models": []\n}'),
        ("ListModels", {"limit": 0}, ("models", {"limit": 0}), '{\n  "models": []\n}'),
        (
            "ListModels",
            {"limit": 2, "next_page_token": 3},
            ("models", {"limit": 2, "next_page_token": 3}),
            '{\n  "models": []\n}',
        ),
        (
            "DescribeModel",
            {"model_name": "m", "customized": True},
            ("describe", "m", None, {"model_name": "m", "customized": True}, "id"),
            '[\n  {\n    "modelName": "m"\n  }\n]',
        ),
        (
            "DescribeModel",
            {"model_name": "m", "model_version": "all"},
            ("describe", "m", "all", {"model_name": "m", "model_version": "all"}, "id"),
            '[\n  {\n    "modelName": "m"\n  }\n]',
        ),
        ("RegisterModel", {"url": "m.mar"}, ("register", {"url": "m.mar", "synchronous": False}), "Registered."),
        ("ScaleWorker", {"model_name": "m"}, ("scale", "m", None, {"model_name": "m"}), "Scaled."),
        (
            "ScaleWorker",
            {"model_name": "m", "model_version": "2", "min_worker": 0},
            ("scale", "m", "2", {"model_name": "m", "model_version": "2", "min_worker": 0}),
            "Scaled.",
        ),
        ("UnregisterModel", {"model_name": "m"}, ("unregister", "m", None), "Unregistered."),
        ("UnregisterModel", {"model_name": "m", "model_version": "2"}, ("unregister", "m", "2"), "Unregistered."),
        ("SetDefault", {"model_name": "m", "model_version": "2"}, ("set_default", "m", "2"), "Set."),
    ],
)
def test_a_call(method: str, fields: dict[str, Any], asked: tuple[Any, ...], text: str) -> None:
    async def test(served: Served, ask: Ask) -> None:
        answer = await ask(method, metadata=(("x-request-id", "id"),), **fields)
        assert served.models.calls[0] == asked
        assert answer.msg == text
        line, status = await served.access_log.lines.get()
        assert (line.target, line.id, status) == (f"{SERVICE}/{method}", "id", 0)

    with_server(test)


def test_every_parameter_of_a_registration() -> None:
    given = {
        "batch_size": 2, "handler": "h", "initial_workers": 3, "max_batch_delay": 4, "model_name": "m",
        "response_timeout": 5, "runtime": "python", "synchronous": True, "url": "m.mar", "s3_sse_kms": True,
        "startup_timeout": 6, "replace": True,
    }  # fmt: skip

    async def test(served: Served, ask: Ask) -> None:
        await ask("RegisterModel", **given)
        assert served.models.calls[0] == ("register", given)

    with_server(test)


@pytest.mark.parametrize(
    ("refusal", "code", "details"),
    [
        (
            ModelNotFound("m"),
            StatusCode.NOT_FOUND,
            "Model not found: m\norg.pytorch.serve.archive.model.ModelNotFoundException",
        ),
        (
            ArchiveNotFound("Model not found at: m"),
            StatusCode.NOT_FOUND,
            "Model not found at: m\norg.pytorch.serve.archive.model.ModelNotFoundException",
        ),
        (BadRequest("No."), StatusCode.INVALID_ARGUMENT, "No.\norg.pytorch.serve.http.BadRequestException"),
        (Conflict("Twice."), StatusCode.ALREADY_EXISTS, "Twice.\norg.pytorch.serve.http.ConflictStatusException"),
        (
            ModelApiDisabled(),
            StatusCode.PERMISSION_DENIED,
            "Model API disabled\norg.pytorch.serve.archive.model.ModelException",
        ),
        (
            WorkersNotStarted("m", "1", "Why."),
            StatusCode.INTERNAL,
            "Failed to start workers for model m version: 1. Why.\norg.pytorch.serve.http.InternalServerException",
        ),
    ],
)
def test_a_refusal(refusal: ServiceError, code: StatusCode, details: str) -> None:
    async def test(served: Served, ask: Ask) -> None:
        served.models.refusal = refusal
        error = await failure(ask("RegisterModel", url="m.mar"))
        assert (error.code(), error.details()) == (code, details)
        assert (await served.access_log.lines.get())[1] == code.value[0]

    with_server(test)


@pytest.mark.parametrize("metadata", [(), (("authorization", "Bearer wrong"),)])
def test_the_management_token(metadata: Any) -> None:
    async def test(served: Served, ask: Ask) -> None:
        for method in POOL.FindServiceByName(SERVICE).methods_by_name:
            error = await failure(ask(method, metadata=metadata))
            assert (error.code(), error.details()) == (StatusCode.PERMISSION_DENIED, "Token refused")
        assert served.models.calls == []
        await ask("ListModels", metadata=(("authorization", "Bearer K"),))

    with_server(test, tokens=OneKey(kind="management"))


@pytest.mark.parametrize("refusal", [None, Conflict("Twice.")])
def test_a_call_goes_on_to_its_end_without_its_client(refusal: ServiceError | None) -> None:
    """A change is never half done. An error that no client waits for any more is not a bug of the server."""

    async def test(served: Served, ask: Ask) -> None:
        served.models.gate = asyncio.Event()
        error = await failure(ask("RegisterModel", url="m.mar", timeout=0.1))
        assert error.code() is StatusCode.DEADLINE_EXCEEDED
        served.models.refusal = refusal
        served.models.gate.set()
        while ("registered",) not in served.models.calls:
            await asyncio.sleep(0.001)

    with_server(test)
