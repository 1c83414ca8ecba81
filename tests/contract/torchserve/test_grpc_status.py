"""Which gRPC status a client sees, its details, and TLS.

contract#grpc
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tests.certificates import Certificate, write_pem
from tests.contract.torchserve.grpc_client import HTTP, INFERENCE, MANAGEMENT, MODEL, Stub, failure, stub_of
from tests.contract.torchserve.setup import Setup, serving
from tests.e2e.server import GRPC_TRANSPORTS, RunningServer
from tests.phrases import no_worker, worker_died

pytestmark = pytest.mark.e2e
BOTH_WAYS = True

SERVER = Setup(
    services=("echo", "prediction_error", "raises", "stream_fails", "crash"),
    load=("prediction_error.mar", "raises.mar", "crash.mar"),
    properties="default_workers_per_model=1\n",
)


@pytest.fixture
def inference(server: RunningServer) -> Iterator[Stub]:
    with stub_of(server, INFERENCE) as stub:
        yield stub


def refused(inference: Stub, method: str, model: str, data: bytes = b"", version: str = "") -> tuple[str, str]:
    call = getattr(inference, method)
    return failure(lambda: call(model_name=model, model_version=version, input={"body": data}))


METHODS = pytest.mark.parametrize("method", ["Predictions", "StreamPredictions"])


@METHODS
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "INVALID_ARGUMENT"),
        (401, "UNAUTHENTICATED"),
        (403, "PERMISSION_DENIED"),
        (404, "NOT_FOUND"),
        (409, "ABORTED"),
        (413, "RESOURCE_EXHAUSTED"),
        (416, "OUT_OF_RANGE"),
        (418, "FAILED_PRECONDITION"),
        (429, "RESOURCE_EXHAUSTED"),
        (499, "CANCELLED"),
        (500, "INTERNAL"),
        (501, "UNIMPLEMENTED"),
        (502, "INTERNAL"),
        (503, "UNAVAILABLE"),
        (504, "DEADLINE_EXCEEDED"),
        (507, "INTERNAL"),
    ],
)
def test_the_handlers_status(inference: Stub, method: str, status: int, code: str) -> None:
    details = f"you asked for {status}\n{HTTP}.InternalServerException"
    assert refused(inference, method, "prediction_error", b"%d" % status) == (code, details)


@METHODS
def test_a_handler_that_raises(inference: Stub, method: str) -> None:
    code, details = refused(inference, method, "raises")
    assert code == "UNAVAILABLE"
    assert details.startswith("Prediction failed")
    assert details.endswith(f"\n{HTTP}.InternalServerException")


@METHODS
def test_a_worker_that_dies(inference: Stub, method: str) -> None:
    code, details = refused(inference, method, "crash", b"exit")
    assert code == "INTERNAL"
    assert details.startswith(worker_died("Rank 0 (pid "))
    assert "exited with code 3" in details
    assert details.endswith(f"\n{HTTP}.InternalServerException")


@METHODS
def test_unknown_names_are_internal(inference: Stub, method: str) -> None:
    assert refused(inference, method, "nobody") == (
        "INTERNAL",
        f"Model not found: nobody\n{MODEL}.ModelNotFoundException",
    )
    assert refused(inference, method, "raises", version="9") == (
        "INTERNAL",
        f"Model version: 9 does not exist for model: raises\n{MODEL}.ModelVersionNotFoundException",
    )
    code, details = refused(inference, method, "")
    assert (code, details.partition("\n")[0]) == ("INTERNAL", "Parameter model_name is required.")


@METHODS
def test_no_worker(server: RunningServer, inference: Stub, method: str) -> None:
    assert server.register(server.store / "echo.mar", initial_workers=0).status_code == 200
    code, details = refused(inference, method, "echo")
    assert server.management.delete("/models/echo").status_code == 200
    assert code == "INTERNAL"
    assert details.startswith(no_worker("echo"))


@pytest.mark.parametrize("way", GRPC_TRANSPORTS)
def test_tls(tmp_path: Path, way: str) -> None:
    """`enable_grpc_ssl`: the key and the certificate of the HTTP listeners, and nothing but TLS."""
    key, certificate = write_pem(Certificate.make(), tmp_path)
    properties = (
        f"enable_grpc_ssl=true\nprivate_key_file={key}\ncertificate_file={certificate}\n" + GRPC_TRANSPORTS[way]
    )
    with serving(Setup(services=("echo",), load=("echo.mar",), properties=properties), tmp_path) as server:
        trusted = grpc.ssl_channel_credentials(certificate.read_bytes())
        for kind, service in (("inference", INFERENCE), ("management", MANAGEMENT)):
            port = server.info[f"grpc_{kind}"].rpartition(":")[2]
            with grpc.secure_channel(f"localhost:{port}", trusted) as channel:
                stub = Stub(channel, service)
                assert stub.Ping().health if kind == "inference" else stub.ListModels().msg
            with grpc.insecure_channel(f"localhost:{port}") as channel:
                stub = Stub(channel, service)
                assert failure(stub.Ping if kind == "inference" else stub.ListModels)[0] == "UNAVAILABLE"
