"""llm-serving's start scripts, with a server that is not there: what it is asked, and what the queue gets."""

from __future__ import annotations

import copy
import sys
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest

from msx_mindspore_serving.packages.mindspore_serving.agent import agent_multi_post_method, startup_agents
from msx_mindspore_serving.packages.mindspore_serving.config import ServingConfig, check_valid_config
from msx_mindspore_serving.packages.mindspore_serving.server import starting
from msx_mindspore_serving.packages.mindspore_serving.server.server_process import ServerError
from tests.compat.mindspore_serving.packages.test_starting import NoServer

YAML = """
model_path: {prefill_model: [p.mindir], decode_model: [d.mindir]}
model_config: {model_name: llama_dyn, end_token: 2}
serving_config: {agent_ports: [13000, 13001], server_ip: 127.0.0.1, server_port: 19280}
tokenizer: {type: LlamaTokenizer, vocab_file: tokenizer.model}
"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> NoServer:
    made = NoServer()
    monkeypatch.setattr(agent_multi_post_method, "SERVER", made)
    monkeypatch.setattr(starting, "SERVER", made)
    return made


@pytest.fixture
def config(tmp_path: Path) -> ServingConfig:
    (tmp_path / "config.yaml").write_text(YAML)
    return ServingConfig(str(tmp_path / "config.yaml"))


def taken(queue: SimpleQueue[int]) -> list[int]:
    return [queue.get_nowait() for _ in range(queue.qsize())]


def test_one_number_for_each_agent(server: NoServer, config: ServingConfig) -> None:
    queue: SimpleQueue[int] = SimpleQueue()
    assert check_valid_config(config)
    startup_agents(config, queue)
    (first, loaded), (second, opened) = server.asked
    assert (first, type(loaded["config"]), loaded["config"]["model_config"]["model_name"]) == (
        "load_text",
        dict,
        "llama_dyn",
    )
    assert (second, opened["api"], opened["address"]) == ("open", "text", "127.0.0.1:19280")
    assert taken(queue) == [0, 1]


def test_a_refusal_stops_the_server(server: NoServer, config: ServingConfig) -> None:
    queue: SimpleQueue[int] = SimpleQueue()
    server.answer = ServerError("text", "it is not there")
    with pytest.raises(RuntimeError, match="it is not there"):
        startup_agents(config, queue)
    assert (server.stopped, taken(queue)) == (1, [])


def test_the_script_of_2023(server: NoServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its settings are in a module of its own."""
    settings = SimpleNamespace(
        SERVER_APP_HOST="localhost",
        SERVER_APP_PORT=9811,
        ModelName="llama_dyn",
        Baseconfig={"end_token": 2, "seq_length": [1024], "tokenizer_path": "t.model", "top_k_num": 100},
        AgentConfig={"AgentPorts": [9820], "device_start": 6},
        huggingface="/srv/llama",
    )
    monkeypatch.setitem(sys.modules, "config.serving_config", settings)
    queue: SimpleQueue[int] = SimpleQueue()
    startup_agents("ctx", ["inc"], "post", 1, ["p.mindir"], ["d.mindir"], ["argmax"], ["topk"], queue)
    assert server.asked[0][1]["config"] == {
        "model_path": {"prefill_model": ["p.mindir"], "decode_model": ["d.mindir"]},
        "model_config": {"model_name": "llama_dyn", "end_token": 2, "seq_length": [1024]},
        "serving_config": {
            "agent_ports": [9820],
            "start_device_id": 6,
            "server_ip": "localhost",
            "server_port": 9811,
        },
        "tokenizer": {"vocab_file": "t.model"},
        "huggingface": "/srv/llama",
    }
    assert taken(queue) == [0]


def test_other_arguments(server: NoServer) -> None:
    with pytest.raises(TypeError, match="nine arguments, not 1"):
        startup_agents({})
    with pytest.raises(RuntimeError, match=r"has not imported config\.serving_config"):
        startup_agents(*range(9))


def test_a_configuration_is_a_dict_with_attributes(config: ServingConfig) -> None:
    assert config.model_path.prefill_model == ["p.mindir"]
    assert (config.pa_config, config.model_config.backend) == (None, None)
    config.own = 1
    assert copy.deepcopy(config) == config
    assert config["own"] == 1
    del config.own
    assert "own" not in config


@pytest.mark.parametrize(
    ("section", "member", "problem"),
    [
        ("tokenizer", "", "tokenizer: the section is missing"),
        ("model_config", "model_name", "model_config.model_name: needed, and missing"),
        ("serving_config", "server_port", "serving_config.server_port: needed, and missing"),
    ],
)
def test_what_is_missing_is_said(
    config: ServingConfig, section: str, member: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    owner, name = (config[section], member) if member else (config, section)
    del owner[name]
    assert not check_valid_config(config)
    assert f"ERROR: {problem}" in capsys.readouterr().out


def test_names_of_the_packages() -> None:
    names: dict[str, Any] = {}
    exec(
        "from mindspore_serving import ClientRequest, Parameters, startup_agents\n"
        "from mindspore_serving.config.config import ServingConfig, check_valid_config\n"
        "from agent.agent_multi_post_method import *\n"
        "from serving_utils.register import import_all_modules_for_register\n"
        "import_all_modules_for_register()\n",
        names,
    )
    assert names["startup_agents"].__module__ == "mindspore_serving.agent.agent_multi_post_method"


@pytest.mark.parametrize("name", ["LLMServer", "models", "schedule", "master", "worker"])
def test_names_that_are_gone(name: str) -> None:
    package = import_module("mindspore_serving")
    with pytest.raises(ImportError):
        import_module(f"mindspore_serving.{name}")
    assert not hasattr(package, name)


@pytest.mark.parametrize("module", ["mindspore_serving", "mindspore_serving.agent", "agent.agent_multi_post_method"])
def test_startup_agents_by_each_of_its_modules(module: str) -> None:
    found = import_module(module).startup_agents
    assert (found.__module__, callable(found)) == ("mindspore_serving.agent.agent_multi_post_method", True)
