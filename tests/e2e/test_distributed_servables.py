"""MindSpore Serving's tutorial of the MatMul over several ranks: three scripts, which know nothing of MSX."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from msx_archiver.servable import pack_servable
from tests.core.test_group_config import group
from tests.e2e.matmul import export
from tests.e2e.server import new_store, run_server, wait_until
from tests.free_ports import free_ports
from tests.mindspore_scripts import run_mindspore
from tests.processes import alive, children_of, environment_of

pytest.importorskip("mindspore")

pytestmark = [pytest.mark.e2e, pytest.mark.mindspore, pytest.mark.collectives, pytest.mark.timeout(600)]

START = 400.0
"""Seconds until eight ranks on two cores are ready."""

CONFIG = """
from mindspore_serving.server import distributed, register

model = distributed.declare_servable(rank_size={ranks}, stage_size=1, with_batch_dim=False)


def twice(y):
    return y * 2


@register.register_method(output_names=["y"])
def predict(x):
    y = register.add_stage(model, x, outputs_count=1)
    return y


@register.register_method(output_names=["y"])
def doubled(x):
    y = register.add_stage(model, x, outputs_count=1)
    return register.add_stage(twice, y, outputs_count=1)
"""

SERVER = """
import os
import sys
from mindspore_serving import server
from mindspore_serving.server import distributed


def start():
    here = os.path.dirname(os.path.realpath(sys.argv[0]))
    distributed.start_servable(here, "matmul", rank_table_json_file="rank_table.json", version_number=1,
                               distributed_address="127.0.0.1:{agents}", wait_agents_time_in_seconds=0)
    server.start_grpc_server("127.0.0.1:{grpc}")
    server.start_restful_server("127.0.0.1:{rest}")


if __name__ == "__main__":
    start()
"""

AGENT = """
from mindspore_serving.server import distributed


def start_agents():
    models = [f"model/device{{rank}}/matmul.mindir" for rank in range({ranks})]
    groups = [f"model/device{{rank}}/group_config.pb" for rank in range({ranks})]
    distributed.startup_agents(distributed_address="127.0.0.1:{agents}", model_files=models, group_config_files=groups)


if __name__ == "__main__":
    start_agents()
"""

CLIENT = """
import numpy as np
from mindspore_serving.client import Client

client = Client("127.0.0.1:{grpc}", "matmul", "predict")
result = client.infer([{{"x": np.ones((128, 96), np.float32)}}])
print(result[0]["y"].shape, np.unique(result[0]["y"]))
"""


class Tutorial:
    """Its folder, and its scripts as processes."""

    def __init__(self, folder: Path, ranks: int) -> None:
        self.folder = folder
        self.agents, self.grpc, self.rest = free_ports(3)
        self._running: list[subprocess.Popen[str]] = []
        export(folder, ranks)
        for rank in range(ranks):
            (folder / f"model/device{rank}/group_config.pb").write_bytes(group("all-1", *range(ranks)))
        devices = [{"device_id": str(rank), "rank_id": str(rank)} for rank in range(ranks)]
        table = {"version": "1.0", "server_list": [{"server_id": "127.0.0.1", "device": devices}]}
        (folder / "rank_table.json").write_text(json.dumps(table))
        (folder / "matmul").mkdir()
        self._write("matmul/servable_config.py", CONFIG, ranks)
        for name, text in {"serving_server.py": SERVER, "serving_agent.py": AGENT, "client.py": CLIENT}.items():
            self._write(name, text, ranks)

    def start(self, script: str) -> subprocess.Popen[str]:
        with self.output(script).open("w") as output:
            process = subprocess.Popen(
                [sys.executable, script], cwd=self.folder, stdout=output, stderr=subprocess.STDOUT, text=True
            )
        self._running.append(process)
        return process

    def output(self, script: str) -> Path:
        return (self.folder / script).with_suffix(".txt")

    def says(self, script: str, text: str) -> None:
        wait_until(
            lambda: text in self.output(script).read_text() or any(p.poll() is not None for p in self._running),
            f"{script} says {text!r}",
            self.all_output,
            START,
        )
        assert text in self.output(script).read_text(), self.all_output()

    def all_output(self) -> str:
        files = [*self.folder.glob("*.txt"), *self.folder.glob("serving_logs/*")]
        return "\n".join(f"{file.name}: {file.read_text()[-5000:]}" for file in files)

    def answers(self) -> bool:
        """Not while its group is being started again."""
        return "instances" in self._ask("predict")

    def product(self, method: str = "predict") -> list[list[float]]:
        """Answer over REST."""
        answer: list[list[float]] = self._ask(method)["instances"][0]["y"]
        return answer

    def ranks(self, server: subprocess.Popen[str]) -> list[psutil.Process]:
        """Processes, by their ranks."""
        workers = children_of(server.pid, "msx_backend.worker", recursive=True)
        return sorted(workers, key=lambda one: int(environment_of(one).get("RANK", -1)))

    def end(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()

    def _ask(self, method: str) -> Any:
        instances = {"instances": [{"x": [[1.0] * 96] * 128}]}
        return httpx.post(f"http://127.0.0.1:{self.rest}/model/matmul:{method}", json=instances, timeout=120).json()

    def _write(self, name: str, text: str, ranks: int) -> None:
        ports = {"agents": self.agents, "grpc": self.grpc, "rest": self.rest}
        (self.folder / name).write_text(text.format(ranks=ranks, **ports))


@contextmanager
def tutorial(folder: Path, ranks: int) -> Iterator[Tutorial]:
    one = Tutorial(folder, ranks)
    try:
        yield one
    finally:
        one.end()


def assert_products(one: Tutorial) -> None:
    assert one.product() == [[-48.0] * 16] * 128
    assert one.product("doubled") == [[-96.0] * 16] * 128
    client = subprocess.run([sys.executable, "client.py"], cwd=one.folder, capture_output=True, text=True, timeout=120)
    assert client.stdout == "(128, 16) [-48.]\n", client.stderr


def test_two_ranks_until_the_agents_end(tmp_path: Path) -> None:
    with tutorial(tmp_path, 2) as one:
        agents = one.start("serving_agent.py")  # in this order: it waits for the server
        server = one.start("serving_server.py")
        one.says("serving_agent.py", f"Success to start agents, distributed worker_address: 127.0.0.1:{one.agents}\n")
        one.says("serving_server.py", f"RESTful server start success, listening on 127.0.0.1:{one.rest}")
        assert_products(one)
        before = one.ranks(server)
        assert len(before) == 2
        before[1].kill()
        wait_until(lambda: one.answers(), "a new group serves", one.all_output, START)
        assert_products(one)
        after = one.ranks(server)
        agents.send_signal(signal.SIGTERM)
        agents.wait(60)
        server.wait(120)
        wait_until(lambda: not alive([*before, *after]), "no rank is left", one.all_output)


@pytest.mark.long
@pytest.mark.parametrize("ranks", [4, 8])
def test_more_ranks_until_the_server_ends(tmp_path: Path, ranks: int) -> None:
    with tutorial(tmp_path, ranks) as one:
        server = one.start("serving_server.py")
        agents = one.start("serving_agent.py")
        one.says("serving_server.py", f"RESTful server start success, listening on 127.0.0.1:{one.rest}")
        assert_products(one)
        server.send_signal(signal.SIGTERM)
        server.wait(120)
        assert agents.wait(60) == 0
        assert "Success to stop agents" in one.output("serving_agent.py").read_text()


EXPORT = """
import mindspore as ms
from tests.core.mindspore_parallel.exported import First, Last
ms.export(First(), ms.Tensor([[1.0] * 8] * 4), file_name="staged/1/device0/model", file_format="MINDIR")
ms.export(Last(), file_name="staged/1/device1/model", file_format="MINDIR")
"""

STAGED = """
from mindspore_serving.server import distributed, register

model = distributed.declare_servable(rank_size=2, stage_size=2, with_batch_dim=False)


@register.register_method(output_names=["y"])
def predict(x):
    return register.add_stage(model, x, outputs_count=1)
"""


@pytest.mark.long
def test_two_stages_of_a_packed_servable(tmp_path: Path) -> None:
    """The second stage has no inputs, and answers."""
    for rank in range(2):
        (tmp_path / f"staged/1/device{rank}").mkdir(parents=True)
    (tmp_path / "staged/servable_config.py").write_text(STAGED)
    (tmp_path / "staged/model-config.yaml").write_text("parallelType: pp\nmsrun: {nproc-per-node: 2}\n")
    (tmp_path / "export.py").write_text(EXPORT)
    run_mindspore(tmp_path / "export.py", folder=tmp_path)
    pack_servable(tmp_path / "staged", None, new_store(tmp_path))
    with run_server(tmp_path, "--models", "staged-1.mar", ready=False) as server:
        server.wait_ready(START)
        rows = [[float(row)] * 8 for row in range(4)]
        for _ in range(2):
            reply = server.inference.post("/model/staged:predict", json={"instances": {"x": rows}}, timeout=120)
            assert reply.json() == {"instances": [{"y": [8.0, 16.0, 24.0, 32.0]}]}
        wrong = server.inference.post("/model/staged:predict", json={"instances": {"x": [1.0]}}, timeout=120)
        assert wrong.json() == {"error_msg": "Given model input 0 size 4 not match the size 128 defined in model"}
        assert server.describe("staged")["workers"][0]["generation"] == 1
