"""gRPC clients by stubs made from TorchServe's definitions (protos/), in a descriptor pool of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import grpc
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from tests.e2e.server import WATCHDOG, RunningServer

PROTOS = Path(__file__).parent / "protos"
OURS = Path(str(resources.files("msx_net.grpc"))) / "protos"
"""For google.rpc.Status, and for the health protocol."""

INFERENCE = "org.pytorch.serve.grpc.inference.InferenceAPIsService"
MANAGEMENT = "org.pytorch.serve.grpc.management.ManagementAPIsService"
OPEN_INFERENCE = "org.pytorch.serve.grpc.openinference.GRPCInferenceService"
HEALTH = "grpc.health.v1.Health"

HTTP, MODEL = "org.pytorch.serve.http", "org.pytorch.serve.archive.model"
"""The packages of TorchServe's errors."""

REFUSED = "Token Authorization failed. Token either incorrect, expired, or not provided correctly"


@cache
def pool() -> DescriptorPool:
    from grpc_tools import protoc

    files = [
        *(path.name for path in PROTOS.glob("*.proto")),
        "open_inference_grpc.proto",
        "grpc/health/v1/health.proto",
    ]
    with TemporaryDirectory() as folder:
        built = Path(folder, "built.binpb")
        well_known = resources.files("grpc_tools") / "_proto"
        paths = [f"-I{PROTOS}", f"-I{OURS}", f"-I{well_known}"]
        assert protoc.main(["protoc", *paths, "--include_imports", f"--descriptor_set_out={built}", *files]) == 0
        descriptors = FileDescriptorSet.FromString(built.read_bytes())
    found = DescriptorPool()
    for file in descriptors.file:
        found.AddSerializedFile(file.SerializeToString())
    return found


def message(name: str) -> Any:
    return GetMessageClass(pool().FindMessageTypeByName(name))


class Stub:
    """`stub.Predictions(model_name=…)`, by the fields of the request; `options` are gRPC's, such as metadata."""

    def __init__(self, channel: grpc.Channel, service: str, **options: Any) -> None:
        self._channel, self._service = channel, pool().FindServiceByName(service)
        self._options = {"timeout": WATCHDOG, **options}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = self._service.FindMethodByName(name)
        request, response = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
        kind = f"{'stream' if method.client_streaming else 'unary'}_{'stream' if method.server_streaming else 'unary'}"
        path = f"/{self._service.full_name}/{name}"
        call = getattr(self._channel, kind)(path, request.SerializeToString, response.FromString)

        def ask(requests: Any = None, *, options: dict[str, Any] | None = None, **fields: Any) -> Any:
            return call(request(**fields) if requests is None else requests, **{**self._options, **(options or {})})

        return ask


@contextmanager
def stub_of(server: RunningServer, service: str, **options: Any) -> Iterator[Stub]:
    """With the key of its listener, where tokens are on."""
    kind = "management" if service == MANAGEMENT else "inference"
    if server.keys is not None:
        options.setdefault("metadata", [("authorization", f"Bearer {server.keys[kind]['key']}")])
    with grpc.insecure_channel(server.info[f"grpc_{kind}"]) as channel:
        yield Stub(channel, service, **options)


def failure(call: Callable[[], Any]) -> tuple[str, str]:
    """Code and details of the error that the call ends with."""
    try:
        answer = call()
        list(answer) if hasattr(answer, "__next__") else None
    except grpc.RpcError as error:
        known: Any = error
        return known.code().name, known.details()
    raise AssertionError("the call did not fail")
