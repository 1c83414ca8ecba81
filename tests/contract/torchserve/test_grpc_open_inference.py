"""The Open Inference Protocol under TorchServe's own package.

contract#grpc
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msx_net.grpc.messages import POOL
from tests.contract.torchserve.grpc_client import INFERENCE, MODEL, OPEN_INFERENCE, Stub, failure, stub_of
from tests.contract.torchserve.setup import Setup, serving
from tests.e2e.server import RunningServer, pack_service

pytest.importorskip("numpy", reason="tensors are NumPy arrays (extra mindspore)")
pytestmark = pytest.mark.e2e
BOTH_WAYS = True


def prepare(store: Path) -> None:
    pack_service("tensors", store, model="mirror", function="mirror", config="minWorkers: 1\nmaxWorkers: 1\n")


SERVER = Setup(
    services=("prediction_error",),
    prepare=prepare,
    load=("mirror.mar",),
    properties="ts_open_inference_protocol=true\n",
)


@pytest.fixture
def service(server: RunningServer) -> Iterator[Stub]:
    with stub_of(server, OPEN_INFERENCE) as stub:
        yield stub


def test_the_numbers_are_the_standards() -> None:
    """TorchServe's package has these numbers; the standard one has more."""
    names = [descriptor.input_type.name for descriptor in POOL.FindServiceByName(OPEN_INFERENCE).methods]
    names += [descriptor.output_type.name for descriptor in POOL.FindServiceByName(OPEN_INFERENCE).methods]
    for name in [*names, "InferParameter", "InferTensorContents", "ModelInferRequest.InferInputTensor"]:
        ours = POOL.FindMessageTypeByName(f"org.pytorch.serve.grpc.openinference.{name}")
        standard = POOL.FindMessageTypeByName(f"inference.{name}")
        for field in ours.fields:
            same = standard.fields_by_number[field.number]
            assert (same.name, same.type, same.is_repeated) == (field.name, field.type, field.is_repeated)


def test_the_server(service: Stub) -> None:
    assert service.ServerLive().live
    assert service.ServerReady().ready
    assert service.ServerMetadata().name


@pytest.mark.parametrize("version", ["", "1.0"])
def test_a_model(service: Stub, version: str) -> None:
    assert service.ModelReady(name="mirror", version=version).ready
    metadata = service.ModelMetadata(name="mirror", version=version)
    assert (metadata.name, list(metadata.versions)) == ("mirror", ["1.0"])


@pytest.mark.parametrize("method", ["ModelReady", "ModelMetadata"])
def test_unknown_models_and_versions(service: Stub, method: str) -> None:
    call = getattr(service, method)
    message = f"Model not found: nobody\n{MODEL}.ModelNotFoundException"
    assert failure(lambda: call(name="nobody")) == ("NOT_FOUND", message)
    message = f"Model version: 9 does not exist for model: mirror\n{MODEL}.ModelVersionNotFoundException"
    assert failure(lambda: call(name="mirror", version="9")) == ("NOT_FOUND", message)


CONTENTS = [
    ("BOOL", {"bool_contents": [True, False]}),
    ("INT8", {"int_contents": [-1, 2]}),
    ("INT16", {"int_contents": [-1, 2]}),
    ("INT32", {"int_contents": [-1, 2]}),
    ("INT64", {"int64_contents": [-1, 2]}),
    ("UINT8", {"uint_contents": [1, 255]}),
    ("UINT16", {"uint_contents": [1, 2]}),
    ("UINT32", {"uint_contents": [1, 2]}),
    ("UINT64", {"uint64_contents": [1, 2]}),
    ("FP32", {"fp32_contents": [1.5, -2.5]}),
    ("FP64", {"fp64_contents": [1.5, -2.5]}),
    ("BYTES", {"bytes_contents": [b"", b"\x00\xff"]}),
]


@pytest.mark.parametrize(("datatype", "contents"), CONTENTS)
def test_typed_tensors(service: Stub, datatype: str, contents: dict[str, Any]) -> None:
    tensor = {"name": "x", "datatype": datatype, "shape": [2], "contents": contents}
    response = service.ModelInfer(model_name="mirror", id="mine", inputs=[tensor])
    (output,) = response.outputs
    assert (response.model_name, response.model_version, response.id) == ("mirror", "1.0", "mine")
    assert (output.name, output.datatype, list(output.shape)) == ("x", datatype, [2])
    ((field, values),) = output.contents.ListFields()
    assert {field.name: list(values)} == contents
    assert not response.raw_output_contents


def test_raw_tensors_and_one_that_has_no_typed_form(service: Stub) -> None:
    tensor = {"name": "x", "datatype": "FP16", "shape": [2]}
    response = service.ModelInfer(model_name="mirror", inputs=[tensor], raw_input_contents=[b"\x00\x3c\x00\xbc"])
    assert list(response.raw_output_contents) == [b"\x00\x3c\x00\xbc"]


def test_errors(service: Stub) -> None:
    code, details = failure(lambda: service.ModelInfer(model_name="nobody"))
    assert (code, details) == ("NOT_FOUND", f"Model not found: nobody\n{MODEL}.ModelNotFoundException")
    tensor = {"name": "x", "datatype": "FP32", "shape": [3], "contents": {"fp32_contents": [1.0]}}
    code, details = failure(lambda: service.ModelInfer(model_name="mirror", inputs=[tensor]))
    assert code == "INVALID_ARGUMENT"
    assert "x" in details


def test_it_is_served_where_it_is_switched_on(tmp_path: Path) -> None:
    """By the key, or by the environment; else the call is unknown."""
    for env, served in (({}, False), ({"TS_OPEN_INFERENCE_PROTOCOL": "oip"}, True)):
        folder = tmp_path / str(served)
        folder.mkdir()
        with serving(Setup(env=env), folder) as server, stub_of(server, INFERENCE) as inference:
            assert inference.Ping().health
            with stub_of(server, OPEN_INFERENCE) as stub:
                if served:
                    assert stub.ServerLive().live
                else:
                    assert failure(stub.ServerLive)[0] == "UNIMPLEMENTED"
