"""docs/from-mindspore-serving.md says of each name, route and log line of MindSpore Serving what has become of it."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from msx_mindspore_serving.family.family import PATHS
from msx_net.grpc.messages import POOL

PAGE = (Path(__file__).parents[3] / "docs" / "from-mindspore-serving.md").read_text()
QUOTED = re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL))
HEADINGS = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
WORDS = {word for quoted in (*QUOTED, *HEADINGS) for word in re.findall(r"[\w.]+", quoted)}

NAMES = {
    "client": ("Client", "SSLConfig", "ClientGrpcAsyncResult", "ClientGrpcAsyncError"),
    "server": (
        *("start_servables", "ServableStartConfig", "start_grpc_server", "start_restful_server", "stop", "SSLConfig"),
        *("register", "distributed"),
    ),
    "server.register": (
        *("AclOptions", "AscendDeviceInfo", "CPUDeviceInfo", "Context", "GPUDeviceInfo", "GpuOptions", "Model"),
        *("add_stage", "declare_model", "declare_servable", "register_method", "call_preprocess", "call_servable"),
        *("call_preprocess_pipeline", "call_postprocess", "call_postprocess_pipeline"),
    ),
    "log": ("debug", "info", "warning", "error", "get_level", "get_log_config"),
    "server.distributed": ("declare_servable", "start_servable", "startup_agents"),
    "server.master.context": ("set_max_enqueued_requests",),
    "proto.ms_service_pb2": (
        *("PredictRequest", "PredictReply", "Instance", "Tensor", "ErrorMsg", "ServableSpec", "ShmTensorData"),
    ),
    "proto.ms_service_pb2_grpc": ("MSServiceStub", "MSServiceServicer"),
}
"""Public names, by modules of `mindspore_serving`."""

SECTIONS = (
    *("mindspore_serving.client", "mindspore_serving.server", "mindspore_serving.server.register"),
    "mindspore_serving.log",
)

LOGS = (
    "Serving: Serving gRPC server start success, listening on",
    "Serving: Serving RESTful server start success, listening on",
    "Serving: Master server start success, listening on",
    "Serving: Worker gRPC server start success, listening on",
    "Serving: Start servable success",
    "Serving server begin to exit: receive exit signal",
    "Serving server begin to exit: all worker processes that occupy devices have exited",
    "There is no need to startup additional worker processes, all stages are models, servable:",
)

FILES = ("serving_logs/", "unix_socket_files/", "models_build_temp/", "temp_rank_table/")
SETTINGS = (
    *("GLOG_v", "GLOG_logtostderr", "GLOG_log_dir", "GLOG_stderrthreshold", "logger_maxBytes", "logger_backupCount"),
    *("device_ids", "num_parallel_workers", "device_type", "dec_key", "dec_mode", "max_msg_mb_size", "enable_lite"),
    *("verify_client", "custom_ca", "certificate", "private_key", "version_number", "ssl_config"),
)
SERVICES = ("MSMaster", "MSWorker", "MSDistributedWorker", "MSAgent")


@pytest.mark.parametrize(("module", "name"), [(module, name) for module in NAMES for name in NAMES[module]])
def test_each_name_exists_and_is_on_the_page(module: str, name: str) -> None:
    assert getattr(import_module(f"mindspore_serving.{module}"), name) is not None
    assert name in {word.rpartition(".")[2] for word in WORDS}


@pytest.mark.parametrize("name", NAMES["server.register"] + NAMES["server.distributed"])
def test_server_has_the_names_of_its_modules(name: str) -> None:
    assert getattr(import_module("mindspore_serving.server"), name) is not None


@pytest.mark.parametrize("heading", SECTIONS)
def test_each_module_has_a_section(heading: str) -> None:
    assert heading in HEADINGS


@pytest.mark.parametrize("path", PATHS)
def test_each_route(path: str) -> None:
    shown = path.replace("{model}", "{name}").replace("{version}", "{n}")
    assert shown in QUOTED


def test_the_call() -> None:
    service = POOL.FindServiceByName("mindspore.serving.proto.MSService")
    assert [f"{service.full_name}/{method.name}" for method in service.methods] == [
        one for one in QUOTED if one.startswith(service.full_name)
    ]


@pytest.mark.parametrize("line", [*LOGS, *FILES])
def test_each_log_line_and_file(line: str) -> None:
    assert any(quoted.startswith(line) for quoted in QUOTED)


@pytest.mark.parametrize("name", [*SETTINGS, *SERVICES])
def test_each_setting_and_service(name: str) -> None:
    assert name in WORDS
