"""MindSpore Serving's tutorials: servables, start scripts and clients that know nothing of MSX."""

from __future__ import annotations

import re
import signal
import threading
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from msx_mindspore_serving.packages.mindspore_serving.client import Client, SSLConfig
from tests.certificates import Certificate, write_pem
from tests.e2e.scripts import BEGIN, READY, RunningScript, run_script
from tests.e2e.server import run_server, wait_until
from tests.free_ports import free_port
from tests.mindspore_scripts import run_mindspore
from tests.processes import children_of, command_of, environment_of

pytestmark = pytest.mark.e2e

ADD = """
import os

from mindspore_serving.server import register


def add(x1, x2):
    return x1 + x2


def device(x):
    return os.environ["SERVING_DEVICE_ID"]


def held(x):
    import time
    while not os.path.exists(x):
        time.sleep(0.01)
    return x


@register.register_method(output_names=["y"])
def add_common(x1, x2):
    return register.add_stage(add, x1, x2, outputs_count=1)


@register.register_method(output_names=["y"])
def device_id(x):
    return register.add_stage(device, x, outputs_count=1)


@register.register_method(output_names=["y"])
def hold(x):
    return register.add_stage(held, x, outputs_count=1)
"""

TEXT = """
from mindspore_serving.server import register


def joined(instances):
    for a, b in instances:
        if not b:
            raise RuntimeError("b is empty")
        yield a + b


@register.register_method(output_names=["text"])
def str_concat(a, b):
    return register.add_stage(joined, a, b, outputs_count=1, batch_size=3)
"""


def servable(folder: Path, name: str, config: str) -> Path:
    (folder / name).mkdir(exist_ok=True)
    (folder / name / "servable_config.py").write_text(config)
    return folder / name


def predict(port: int, path: str, *instances: dict[str, Any]) -> Any:
    return httpx.post(f"http://127.0.0.1:{port}/model/{path}", json={"instances": instances}, timeout=60).json()


SEVERAL = BEGIN + (
    "import os\n"
    "here = os.path.dirname(os.path.realpath(sys.argv[0]))\n"
    "server.start_grpc_server('unix:serving.sock', max_msg_mb_size=1)\n"
    "server.start_restful_server(sys.argv[1], max_msg_mb_size=1)\n"
    "server.master.context.set_max_enqueued_requests(1)\n"
    "add = server.ServableStartConfig(servable_directory=here, servable_name='add', device_ids=(0, 1))\n"
    "text = server.ServableStartConfig('.', 'text', num_parallel_workers=2)\n"
    "server.start_servables([add, text])\n" + READY
)


FOLDERS = ("unix_socket_files", "models_build_temp", "temp_rank_table")
LOG_FILES = ("access_log.log", "model_log.log", "model_metrics.log", "ts_log.log", "ts_metrics.log")
"""TorchServe's."""


def test_several_servables_by_rest_and_a_unix_socket(tmp_path: Path) -> None:
    servable(tmp_path, "add", ADD)
    servable(tmp_path, "text", TEXT)
    port = free_port()
    with run_script(tmp_path, SEVERAL, f"127.0.0.1:{port}") as running:
        running.wait_ready()
        assert len(running.below) == 1 + 4, running.below
        assert predict(port, "add:add_common", {"x1": 1, "x2": 2}, {"x1": [1.5], "x2": [1.0]}) == {
            "instances": [{"y": 3}, {"y": [2.5]}]
        }
        failed = (
            "Call Function 'text.joined' Failed, method: 'str_concat', stage index(begin with 1): 1, error msg: b is "
        )
        assert predict(port, "text:str_concat", {"a": "x", "b": "y"}, {"a": "x", "b": ""}) == {
            "instances": [{"text": "xy"}, {"error_msg": f"{failed}empty"}]
        }
        many = [{"x": 0}] * 40
        assert {one["y"] for one in predict(port, "add:device_id", *many)["instances"]} == {"0", "1"}
        client = Client(f"unix:{tmp_path}/serving.sock", "add", "add_common")
        [found] = client.infer([{"x1": np.ones((2, 2), np.float32), "x2": np.ones((2, 2), np.float32)}])
        assert found["y"].tolist() == [[2.0, 2.0], [2.0, 2.0]]
        limits(running, port)
        enqueued(running, port)
        lines_and_files(running, f"127.0.0.1:{port}")


def lines_and_files(running: RunningScript, address: str) -> None:
    """No line of processes that are not there, no file a worker, and no folders for sockets and builds."""
    start = "server start success, listening on"
    assert running.out.splitlines() == [
        f"Serving: Serving gRPC {start} unix:serving.sock",
        f"Serving: Serving RESTful {start} {address}",
        "READY",
    ]
    for name in ("add", "text"):
        assert f"Serving: Start servable success, servable directory: '{running.folder}', servable name: '{name}'" in (
            running.log
        )
    assert len(re.findall(r"worker \d+ is ready after", running.log)) == 4
    assert "There is no need to startup additional worker processes" not in running.log + running.err
    assert {file.name for file in (running.folder / "serving_logs").iterdir()} == {"msx.log", *LOG_FILES}
    assert not [one for one in FOLDERS if (running.folder / one).exists()]


def limits(running: RunningScript, port: int) -> None:
    """A MiB, in both directions."""
    large = "x" * (1 << 20)
    assert predict(port, "text:str_concat", {"a": large, "b": "y"}) == {
        "error_msg": f"http message is bigger than {1 << 20}"
    }
    client = Client(f"unix:{running.folder}/serving.sock", "text", "str_concat")
    said = client.infer({"a": large, "b": "y"})["error"]
    begin = "Grpc Error, (8, 'resource exhausted'), "
    assert said.startswith(f"{begin}Received message larger than max ("), said
    assert f" vs. {1 << 20})" in said
    half = "x" * (600 << 10)
    assert client.infer({"a": half, "b": half})["error"].startswith(begin)
    [good] = client.infer({"a": half, "b": "y"})
    assert good["text"] == half + "y"


def enqueued(running: RunningScript, port: int) -> None:
    """One request at a time: the next is refused at once, whatever its servable."""
    release = running.folder / "release"
    refused = {"error_msg": "Serving Error: enqueued requests count exceeds the limit 1"}
    answers: list[Any] = []

    def hold() -> None:
        while (answer := predict(port, "add:hold", {"x": str(release)})) == refused:
            pass  # the other request was there first
        answers.append(answer)

    waiting = threading.Thread(target=hold)
    waiting.start()
    wait_until(lambda: predict(port, "text:str_concat", {"a": "x", "b": "y"}) == refused, "it is refused")
    release.touch()
    waiting.join()
    assert answers == [{"instances": [{"y": str(release)}]}]


CERTIFIED = BEGIN + (
    "ssl = server.SSLConfig('certificate.pem', 'key.pem', custom_ca='client/certificate.pem', verify_client=True)\n"
    "server.start_servables(server.ServableStartConfig('.', 'text'))\n"
    "server.start_grpc_server(sys.argv[1], ssl_config=ssl)\n" + READY
)


def test_a_client_with_a_certificate(tmp_path: Path) -> None:
    servable(tmp_path, "text", TEXT)
    (tmp_path / "client").mkdir()
    _, own = write_pem(Certificate.make(), tmp_path)
    key, certificate = write_pem(Certificate.make(), tmp_path / "client")
    port = free_port()
    with run_script(tmp_path, CERTIFIED, f"localhost:{port}") as running:
        running.wait_ready()
        for ssl, good in (
            (SSLConfig(str(certificate), str(key), str(own)), True),
            (SSLConfig(custom_ca=str(own)), False),
        ):
            client = Client(f"localhost:{port}", "text", "str_concat", ssl_config=ssl)
            said = client.infer({"a": "x", "b": "y"})
            assert said == [{"text": "xy"}] if good else said.keys() == {"error"}, said


FAILING = BEGIN + (
    "def start(name, **options):\n"
    "    try:\n"
    "        server.start_restful_server(sys.argv[1])\n"
    "        server.start_servables(server.ServableStartConfig('.', name, **options))\n"
    "        print('STARTED', name, flush=True)\n"
    "    except RuntimeError as error:\n"
    "        print(error, flush=True)\n"
    "start('raises', device_ids=3)\n"
    "start('raises', num_parallel_workers=2)\n"
    "start('empty')\n"
    "start('gone')\n"
    "start('text')\n"
    "start('text')\n"
    "start('text')\n" + READY
)


def test_starts_that_fail_and_start_again(tmp_path: Path) -> None:
    servable(tmp_path, "raises", "raise KeyError('no')")
    servable(tmp_path, "empty", "")
    servable(tmp_path, "text", TEXT)
    port = free_port()
    with run_script(tmp_path, FAILING, f"127.0.0.1:{port}") as running:
        running.wait_ready()
        why, where = (
            "import raises.servable_config failed, 'no'",
            f"servable directory '{tmp_path}', servable name 'gone'",
        )
        said = [line for line in running.out.splitlines() if "success" not in line]
        extra = [said.pop(1), "Fail to start workers: {servable:raises, version:0, extra:%d, <" + why + ">}"]
        assert extra[0] in [extra[1] % number for number in (0, 1)]
        gone = f"Check servable config failed, directory '{tmp_path}/gone' not exist, {where}"
        assert said == [
            f"Fail to start workers: {{servable name:raises, device id:3, <{why}>}}",
            "Fail to start workers: {servable:empty, version:0, extra:0, <Servable 'empty' has not been registered>}",
            f"Serving: Start servables failed: {gone}",
            gone,
            "STARTED text",
            "Raise failed: Serving Error: RESTful server is already running",
            "STARTED text",
            "READY",
        ]
        assert predict(port, "text:str_concat", {"a": "x", "b": "y"}) == {"instances": [{"text": "xy"}]}
        [server] = children_of(running.process.pid)
        children_of(server)[0].kill()
        answered = {"instances": [{"text": "xy"}]}
        wait_until(lambda: predict(port, "text:str_concat", {"a": "x", "b": "y"}) == answered, "a new worker answers")


SLOW = BEGIN + (
    "try:\n"
    "    server.start_servables(server.ServableStartConfig('.', 'slow'))\n"
    "except RuntimeError as error:\n"
    "    print(error, flush=True)\n"
)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_signals_while_workers_start(tmp_path: Path, how: signal.Signals) -> None:
    loads = tmp_path / "loads"
    servable(tmp_path, "slow", f"import pathlib, time\npathlib.Path('{loads}').touch()\ntime.sleep(600)")
    with run_script(tmp_path, SLOW) as running:
        wait_until(lambda: loads.exists() or running.process.poll() is not None, "it loads", running.everything)
        code = running.end(how)
        if how is not signal.SIGKILL:
            signalled = "Fail to start workers because of signal SIGINT or SIGTERM\n"
            assert (code, running.out) == (0, signalled), running.everything()


MODEL = """
from mindspore_serving.server import register

model = register.declare_model(model_file="tensor.mindir", model_format="MindIR", with_batch_dim=False)


@register.register_method(output_names=["y"])
def compute(x1, x2):
    return register.add_stage(model, x1, x2, outputs_count=1)
"""

EXPORT = """
import mindspore as ms
import numpy as np
from mindspore import nn, ops

class Net(nn.Cell):
    def __init__(self, op):
        super().__init__()
        self.op = op
    def construct(self, x, y):
        return self.op(x, y)

x = ms.Tensor(np.ones((2, 2), np.float32))
for version, op in (("1", ops.Add()), ("2", ops.Sub()), ("10", ops.Mul())):
    ms.export(Net(op), x, x, file_name=f"tensor/{version}/tensor", file_format="MINDIR", enc_key=b"0123456789ABCDEF")
"""

VERSIONS = BEGIN + (
    "key = dict(dec_key=b'0123456789ABCDEF', dec_mode='AES-GCM')\n"
    "newest, first = (server.ServableStartConfig('.', 'tensor', version_number=n, **key) for n in (0, 1))\n"
    "server.start_servables([newest, first])\n"
    "server.start_grpc_server(sys.argv[1])\n"
    "server.start_restful_server(sys.argv[2])\n" + READY
)


@pytest.mark.mindspore
def test_versions_of_an_encrypted_model(tmp_path: Path) -> None:
    """0 is the newest, 10; 2 is not started. The key is in none of the files that are written."""
    pytest.importorskip("mindspore")
    folder = servable(tmp_path, "tensor", MODEL)
    for name in ("1", "2", "10"):
        (folder / name).mkdir()
    (tmp_path / "export.py").write_text(EXPORT)
    run_mindspore(tmp_path / "export.py", folder=tmp_path)
    ports = free_port(), free_port()
    with run_script(tmp_path, VERSIONS, *(f"127.0.0.1:{port}" for port in ports)) as running:
        running.wait_ready()
        x1, x2 = np.full((2, 2), 6, np.float32), np.full((2, 2), 2, np.float32)
        for version, value in ((0, 12.0), (10, 12.0), (1, 8.0)):
            client = Client(f"127.0.0.1:{ports[0]}", "tensor", "compute", version_number=version)
            assert client.infer({"x1": x1, "x2": x2})[0]["y"].tolist() == [[value] * 2] * 2, version
        unavailable = "Request servable(tensor) method(compute)  version(2) , servable is not available"
        instance = {"x1": x1.tolist(), "x2": x2.tolist()}
        assert predict(ports[1], "tensor/version/2:compute", instance) == {"error_msg": unavailable}
        assert predict(ports[1], "tensor/version/1:compute", instance) == {"instances": [{"y": [[8.0] * 2] * 2}]}
        written = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".py"]
        assert not [path for path in written if b"0123456789ABCDEF" in path.read_bytes()]
        environments = [f"{environment_of(one)} {command_of(one)}" for one in running.below]
        assert not [text for text in environments if "0123456789ABCDEF" in text]


def test_a_folder_of_servables_without_a_script(tmp_path: Path) -> None:
    """On the usual ports, with keys; one that cannot be packed does not keep the others."""
    (tmp_path / "servables").mkdir()
    text = servable(tmp_path / "servables", "text", TEXT)
    for version in ("1", "3"):
        (text / version).mkdir()
    servable(tmp_path / "servables", "bad", "def")
    flags = ("--servables", str(tmp_path / "servables"))
    with run_server(tmp_path, *flags, tokens=True, ready=False) as server:
        server.wait_serving()
        instances = {"instances": [{"a": "x", "b": "y"}]}
        for path in ("/model/text:str_concat", "/model/text/version/1:str_concat"):
            assert server.inference.post(path, json=instances).json() == {"instances": [{"text": "xy"}]}
        assert server.describe("text")["modelVersion"] == "3"
        assert httpx.post(server.info["inference"] + "/model/text:str_concat", json=instances).status_code == 401
        assert "servable bad 1 of " in server.info["not_loaded"][0]
