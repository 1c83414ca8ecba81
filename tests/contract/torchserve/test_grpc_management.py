"""The management service over gRPC. Its texts are REST's (contract#management).

contract#grpc
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.contract.torchserve.grpc_client import (
    HTTP,
    INFERENCE,
    MANAGEMENT,
    MODEL,
    REFUSED,
    Stub,
    failure,
    stub_of,
)
from tests.contract.torchserve.setup import Setup, serving
from tests.e2e.server import RunningServer, pack_service, wait_until

pytestmark = pytest.mark.e2e
BOTH_WAYS = True


def prepare(store: Path) -> None:
    for version in ("1.0", "2.0"):
        pack_service("echo", store, version=version).rename(store / f"echo-{version}.mar")
    pack_service("raises_in_init", store)
    pack_service("describes", store)
    (store / "text.mar").write_text("no archive")


SERVER = Setup(prepare=prepare)


@pytest.fixture
def management(server: RunningServer, nothing_registered: None) -> Iterator[Stub]:
    with stub_of(server, MANAGEMENT) as stub:
        yield stub


def models(management: Stub, **fields: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(management.ListModels(**fields).msg)
    return found


def described(management: Stub, name: str = "echo", **fields: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(management.DescribeModel(model_name=name, **fields).msg)
    return found


# -- RegisterModel --


def test_without_workers(management: Stub) -> None:
    assert management.RegisterModel(url="echo-1.0.mar").msg == (
        'Model "echo" Version: 1.0 registered with 0 initial workers. '
        "Use scale workers API to add workers for the model."
    )


def test_with_workers(management: Stub) -> None:
    """`synchronous` is false unless it is asked for."""
    told = management.RegisterModel(url="echo-1.0.mar", model_name="a", initial_workers=1, synchronous=True)
    assert told.msg == 'Model "a" Version: 1.0 registered with 1 initial workers'
    [worker] = described(management, "a")[0]["workers"]
    assert worker["status"] == "READY"
    told = management.RegisterModel(url="echo-1.0.mar", model_name="b", initial_workers=1)
    assert told.msg == "Processing worker updates..."


def test_every_setting(management: Stub) -> None:
    management.RegisterModel(
        url="echo-1.0.mar", batch_size=2, max_batch_delay=3, response_timeout=4, startup_timeout=5, runtime="python3"
    )
    [found] = described(management)
    names = ("batchSize", "maxBatchDelay", "responseTimeout", "startupTimeout")
    assert [found[name] for name in names] == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("fields", "code", "details"),
    [
        ({}, "INVALID_ARGUMENT", f"Parameter url is required.\n{HTTP}.BadRequestException"),
        (
            {"url": "../echo-1.0.mar"},
            "NOT_FOUND",
            f"Relative path is not allowed in url: ../echo-1.0.mar\n{MODEL}.ModelNotFoundException",
        ),
        (
            {"url": "echo-1.0.mar", "runtime": "cobol"},
            "INVALID_ARGUMENT",
            f"Invalid RuntimeType value: cobol\n{HTTP}.BadRequestException",
        ),
    ],
)
def test_a_registration_that_is_refused(management: Stub, fields: dict[str, str], code: str, details: str) -> None:
    assert failure(lambda: management.RegisterModel(**fields)) == (code, details)


def test_an_archive_that_is_not_there(management: Stub) -> None:
    code, details = failure(lambda: management.RegisterModel(url="absent.mar"))
    assert code == "NOT_FOUND"
    assert details.startswith("Model not found at: absent.mar")
    assert details.endswith(f"\n{MODEL}.ModelNotFoundException")


def test_what_is_not_an_archive(management: Stub) -> None:
    code, details = failure(lambda: management.RegisterModel(url="text.mar", model_name="text"))
    assert code == "INVALID_ARGUMENT"
    assert details.endswith("InvalidModelException")


def test_a_model_that_is_there_already(management: Stub) -> None:
    """TorchServe says UNKNOWN without a word."""
    management.RegisterModel(url="echo-1.0.mar")
    assert failure(lambda: management.RegisterModel(url="echo-1.0.mar")) == (
        "ALREADY_EXISTS",
        f"Model version 1.0 is already registered for model echo\n{HTTP}.ConflictStatusException",
    )


def test_workers_that_do_not_start(management: Stub) -> None:
    register = lambda: management.RegisterModel(url="raises_in_init.mar", initial_workers=1, synchronous=True)  # noqa: E731
    code, details = failure(register)
    assert code == "INTERNAL"
    assert details.startswith("Failed to start workers for model raises_in_init version: 1.0.")
    assert details.endswith(f"\n{HTTP}.InternalServerException")
    assert models(management)["models"] == []


# -- ListModels --


def test_the_list_of_models(management: Stub) -> None:
    for name in ("b", "a", "c"):
        management.RegisterModel(url="echo-1.0.mar", model_name=name)
    assert management.ListModels(limit=2).msg == (
        '{\n  "nextPageToken": "2",\n  "models": [\n'
        '    {\n      "modelName": "a",\n      "modelUrl": "echo-1.0.mar"\n    },\n'
        '    {\n      "modelName": "b",\n      "modelUrl": "echo-1.0.mar"\n    }\n  ]\n}'
    )
    assert [model["modelName"] for model in models(management, next_page_token=2)["models"]] == ["c"]


def test_the_limit_is_100_when_it_is_left_out(management: Stub) -> None:
    """TorchServe takes it for 0, and shows an empty page."""
    management.RegisterModel(url="echo-1.0.mar")
    assert models(management) == {"models": [{"modelName": "echo", "modelUrl": "echo-1.0.mar"}]}
    assert models(management, limit=-2, next_page_token=-3) == models(management)


# -- DescribeModel --


def test_a_description_is_rests(server: RunningServer, management: Stub) -> None:
    management.RegisterModel(url="echo-1.0.mar", initial_workers=1, synchronous=True)
    rest = server.management.get("/models/echo").text
    assert management.DescribeModel(model_name="echo").msg.splitlines()[:30] == rest.splitlines()[:30]
    assert [*described(management)[0]] == [*json.loads(rest)[0]]


def test_versions(management: Stub) -> None:
    for version in ("1.0", "2.0"):
        management.RegisterModel(url=f"echo-{version}.mar")
    assert [found["modelVersion"] for found in described(management, model_version="all")] == ["1.0", "2.0"]
    assert [found["modelVersion"] for found in described(management, model_version="2.0")] == ["2.0"]
    assert [found["modelVersion"] for found in described(management)] == ["1.0"]


def test_what_the_handler_says_of_itself(management: Stub) -> None:
    management.RegisterModel(url="describes.mar", initial_workers=1, synchronous=True)
    assert described(management, "describes", customized=True)[0]["customizedMetadata"]
    assert "customizedMetadata" not in described(management, "describes")[0]


# -- ScaleWorker, SetDefault, UnregisterModel --


def test_scaling(management: Stub) -> None:
    management.RegisterModel(url="echo-1.0.mar")
    assert management.ScaleWorker(model_name="echo", synchronous=True).msg == "Workers scaled to 1 for model: echo"
    told = management.ScaleWorker(model_name="echo", model_version="1.0", min_worker=1, synchronous=True)
    assert told.msg == "Workers scaled to 1 for model: echo, version: 1.0"
    told = management.ScaleWorker(model_name="echo", min_worker=1, max_worker=2, number_gpu=3, timeout=4)
    assert told.msg == "Processing worker updates..."
    wait_until(lambda: described(management)[0]["maxWorkers"] == 2, "it is done")
    assert failure(lambda: management.ScaleWorker(model_name="echo", min_worker=2, max_worker=1)) == (
        "INVALID_ARGUMENT",
        f"max_worker cannot be less than min_worker.\n{HTTP}.BadRequestException",
    )


def test_the_default_version(management: Stub) -> None:
    for version in ("1.0", "2.0"):
        management.RegisterModel(url=f"echo-{version}.mar")
    told = management.SetDefault(model_name="echo", model_version="2.0")
    assert told.msg == 'Default version successfully updated for model "echo" to "2.0"'
    assert described(management)[0]["modelVersion"] == "2.0"
    code, details = failure(lambda: management.UnregisterModel(model_name="echo", model_version="2.0"))
    assert (code, details.partition("\n")[0]) == ("PERMISSION_DENIED", "Cannot remove default version for model echo")


def test_unregistering(management: Stub) -> None:
    management.RegisterModel(url="echo-1.0.mar", initial_workers=1, synchronous=True)
    assert management.UnregisterModel(model_name="echo").msg == 'Model "echo" unregistered'
    assert models(management)["models"] == []


CALLS = ("DescribeModel", "ScaleWorker", "SetDefault", "UnregisterModel")


@pytest.mark.parametrize("method", CALLS)
@pytest.mark.parametrize("name", ["nobody", ""])
def test_an_unknown_model(management: Stub, method: str, name: str) -> None:
    code, details = failure(lambda: getattr(management, method)(model_name=name, model_version="1.0"))
    assert (code, details) == ("NOT_FOUND", f"Model not found: {name}\n{MODEL}.ModelNotFoundException")


@pytest.mark.parametrize("method", CALLS)
def test_an_unknown_version(management: Stub, method: str) -> None:
    management.RegisterModel(url="echo-1.0.mar")
    code, details = failure(lambda: getattr(management, method)(model_name="echo", model_version="9"))
    assert code == "NOT_FOUND"
    assert details.startswith("Model version")
    assert details.endswith(f"\n{MODEL}.ModelVersionNotFoundException")


# -- keys --


def test_tokens_and_the_model_api(tmp_path: Path) -> None:
    """One server with tokens on and the model API off, as TorchServe's defaults are."""
    with serving(Setup(services=("echo",), load=("echo.mar",), tokens=True, model_api=False), tmp_path) as server:
        assert server.keys is not None
        with stub_of(server, MANAGEMENT) as management, stub_of(server, INFERENCE) as inference:
            assert [model["modelName"] for model in models(management)["models"]] == ["echo"]
            assert inference.Predictions(model_name="echo", input={"body": b"x"}).prediction == b"x"
            disabled: list[Callable[[], Any]] = [
                lambda: management.RegisterModel(url="echo.mar", model_name="again"),
                lambda: management.UnregisterModel(model_name="echo"),
            ]
            for call in disabled:
                code, details = failure(call)
                assert (code, details.partition("\n")[0]) == ("PERMISSION_DENIED", "Model API disabled")
            assert management.ScaleWorker(model_name="echo", min_worker=1, synchronous=True).msg
        wrong = [("authorization", f"Bearer {server.keys['inference']['key']}")]
        right = [("authorization", f"Bearer {server.keys['management']['key']}")]
        with grpc.insecure_channel(server.info["grpc_management"]) as channel:
            for metadata in ([], wrong):
                refused = Stub(channel, MANAGEMENT, metadata=metadata)
                assert failure(refused.ListModels) == ("PERMISSION_DENIED", REFUSED)
            assert Stub(channel, MANAGEMENT, metadata=right).ListModels().msg
        with grpc.insecure_channel(server.info["grpc_inference"]) as channel:
            for metadata in ([], right, [("authorization", f"Basic {server.keys['inference']['key']}")]):
                refused = Stub(channel, INFERENCE, metadata=metadata)
                assert failure(refused.Ping) == ("PERMISSION_DENIED", REFUSED)
                predict = lambda: refused.Predictions(model_name="echo", input={"body": b""})  # noqa: B023, E731
                assert failure(predict) == ("PERMISSION_DENIED", REFUSED)
