import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

import msx_net
from msx_net.grpc.messages import message_class
from msx_net.grpc.service import Rpc, describe

ROOT = Path(__file__).parents[4]
BUILT = ROOT / "frontend/msx_net/grpc/descriptors.binpb"

FOREIGN_CODE = """
from msx_frontend.apis.probes import grpc_health as health
from msx_frontend.apis.torchserve.grpc import inference
from msx_frontend.assembly import grpc_server as server
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FIELD = descriptor_pb2.FieldDescriptorProto
pool = descriptor_pool.Default()

def register(file, package, message):
    proto = descriptor_pb2.FileDescriptorProto(name=file, package=package, syntax="proto3")
    field = FIELD(name="other", number=9, type=FIELD.TYPE_BYTES, label=FIELD.LABEL_OPTIONAL)
    proto.message_type.add(name=message, field=[field])
    pool.AddSerializedFile(proto.SerializeToString())
    foreign = message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{message}"))
    assert foreign(other=b"1").other == b"1"

register("inference.proto", "org.pytorch.serve.grpc.inference", "PredictionsRequest")
register("google/rpc/status.proto", "google.rpc", "Status")
register("grpc/health/v1/health.proto", "grpc.health.v1", "HealthCheckRequest")
"""


def test_the_wire_format_is_torchserves() -> None:
    request = message_class("org.pytorch.serve.grpc.inference.PredictionsRequest")
    numbers = {field.name: field.number for field in request.DESCRIPTOR.fields}
    assert numbers == {"model_name": 1, "model_version": 2, "input": 3, "sequence_id": 4}
    sent = request(model_name="m", model_version="1", input={"k": b"v"}, sequence_id="s").SerializeToString()
    assert sent == b"\x0a\x01m\x12\x011\x1a\x06\x0a\x01k\x12\x01v\x22\x01s"
    response = message_class("org.pytorch.serve.grpc.inference.PredictionResponse")
    status = message_class("google.rpc.Status")(code=5, message="no")
    assert response(prediction=b"p", sequence_id="s", status=status).SerializeToString() == (
        b"\x0a\x01p\x12\x01s\x1a\x06\x08\x05\x12\x02no"
    )
    health = message_class("org.pytorch.serve.grpc.inference.TorchServeHealthResponse")
    assert health(health="h").SerializeToString() == b"\x0a\x01h"


def test_an_unknown_message() -> None:
    with pytest.raises(KeyError, match="Message"):
        message_class("no.such.Message")


def test_a_service_must_have_all_its_methods() -> None:
    with pytest.raises(KeyError, match="Watch"):
        describe("grpc.health.v1.Health", {"Check": Rpc(_never)})


async def _never(request: object, context: object) -> None: ...


def test_foreign_code_may_register_the_same_names_in_the_default_pool() -> None:
    python(FOREIGN_CODE)


GENERATED = """
import importlib, sys
sys.path[:0] = sys.argv[1:2]
def theirs():
    for name in ("inference_pb2", "management_pb2", "kserve.open_inference_pb2"):
        importlib.import_module(name)
def ours():
    importlib.import_module("msx_frontend.assembly.grpc_server")
for load in (theirs, ours) if sys.argv[2] == "theirs" else (ours, theirs):
    load()
import inference_pb2, management_pb2
from msx_net.grpc.messages import message_class
for module, name in ((inference_pb2, "PredictionsRequest"), (management_pb2, "ScaleWorkerRequest")):
    other = getattr(module, name)(model_name="m")
    own = message_class(other.DESCRIPTOR.full_name)
    assert own is not type(other)
    assert own.FromString(other.SerializeToString()).model_name == "m"
"""


@pytest.mark.skipif(find_spec("grpc_tools") is None, reason="grpcio-tools is not installed (extra dev)")
@pytest.mark.parametrize("first", ["theirs", "ours"])
def test_generated_code_of_the_same_packages_lives_in_one_process(tmp_path: Path, first: str) -> None:
    """As TorchServe's clients and tritonclient have it: modules that register their names in the default pool."""
    protos = ROOT / "frontend/msx_net/grpc/protos"
    files = [str(path.relative_to(protos)) for path in protos.rglob("*.proto") if path.parts[-2] != "v1"]
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{protos}", f"--python_out={tmp_path}", *files]
    subprocess.run(command, check=True)
    done = subprocess.run(
        [sys.executable, "-c", GENERATED, str(tmp_path), first], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_only_this_package_imports_grpc() -> None:
    python(
        "import msx_frontend.models.management, msx_core.replies.reply_buffer, sys\nassert 'grpc' not in sys.modules"
    )


def test_the_direct_way_does_not_import_it() -> None:
    python(
        "import msx_frontend.assembly.grpc_server, msx_frontend.assembly.grpc_services, sys\n"
        "import msx_net.grpc.direct.listener\n"
        "assert 'grpc' not in sys.modules"
    )


def test_grpc_has_no_fork_handlers() -> None:
    python("import msx_net.grpc.aio.listener, os; assert os.environ['GRPC_ENABLE_FORK_SUPPORT'] == '0'")


def python(code: str) -> None:
    env = {key: value for key, value in os.environ.items() if not key.startswith("GRPC_")}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_proto_files_are_in_the_package() -> None:
    shipped = Path(msx_net.__file__).parent / "grpc/protos/inference.proto"
    assert "service InferenceAPIsService" in shipped.read_text()


@pytest.mark.skipif(find_spec("grpc_tools") is None, reason="grpcio-tools is not installed (extra dev)")
def test_the_descriptor_set_is_up_to_date(tmp_path: Path) -> None:
    fresh = tmp_path / "fresh.binpb"
    env = {**os.environ, "PYTHON": sys.executable}
    subprocess.run([ROOT / "scripts/build-protos", fresh], env=env, check=True)
    assert FileDescriptorSet.FromString(BUILT.read_bytes()) == FileDescriptorSet.FromString(fresh.read_bytes()), (
        "run scripts/build-protos and commit descriptors.binpb"
    )
