"""Checks of the image without building it."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from msx_frontend.assembly.pid_file import PidFile
from msx_frontend.cli.main import main
from msx_frontend.cli.subcommands.linking import NAMES
from msx_frontend.config.load import load_server_config
from msx_frontend.config.server_config import ServerConfig
from tests.deploy.command_line import image_environment
from tests.deploy.dockerfile import CONTAINER, ROOT, final_stage, of

tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")  # pytest brings it
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PORTS = [8080, 8081, 8082, 7070, 7071]


def listeners(config: ServerConfig) -> list[tuple[str, int | None]]:
    http = (config.inference_address, config.management_address, config.metrics_address)
    return [
        *((address.host, address.port) for address in http),
        (config.grpc_inference_address, config.grpc_inference_port),
        (config.grpc_management_address, config.grpc_management_port),
    ]


def test_ports_are_those_of_the_server(tmp_path: Path) -> None:
    """All addresses of the container, and tokens stay on."""
    config, notices = load_server_config(
        {"model_store": tmp_path, "workflow_store": tmp_path}, CONTAINER / "config.properties", {}
    )
    assert notices == []
    assert listeners(config) == [("0.0.0.0", port) for port in PORTS]
    assert [port for _, port in listeners(ServerConfig())] == PORTS
    assert of("EXPOSE") == [" ".join(map(str, PORTS))]
    assert not config.disable_token_authorization
    assert not config.enable_model_api


def test_what_is_copied_is_there() -> None:
    copied = [rest.split() for rest in of("COPY")]
    sources = [word for words in copied if "--from=build" not in words for word in words[:-1] if word[:2] != "--"]
    assert sources == [".", "deploy/container/entrypoint.sh", "deploy/container/config.properties"]
    assert all((ROOT / source).exists() for source in sources)


def test_the_wheel_is_made_of_what_the_build_may_see() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    seen = {line[1:] for line in lines if line[0] == "!"}
    assert lines[0] == "*"
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*wheel["only-include"], *wheel["force-include"], PROJECT["project"]["readme"], "pyproject.toml"}
    needed |= {*PROJECT["project"]["license-files"], "deploy/container", ".gitignore"}  # the last says what is left out
    assert {
        name for name in needed if not any(fnmatch(name, one) or name.startswith(f"{one}/") for one in seen)
    } == set()
    assert all((ROOT / one).exists() for one in seen), "a name that is gone"


def test_the_extras_exist() -> None:
    (extras,) = [rest.removeprefix("EXTRAS=") for rest in of("ARG") if rest.startswith("EXTRAS=")]
    assert set(extras.split(",")) <= PROJECT["project"]["optional-dependencies"].keys()
    commands = " ".join(of("RUN"))
    assert set(re.findall(r"=(msx-[\w-]+)", commands)) == PROJECT["project"]["scripts"].keys()


def test_the_base_may_be_another_one() -> None:
    """Both stages run the same interpreter, and nothing names a processor."""
    assert of("FROM") == ["${BASE} AS base", "base AS build", "base"]
    assert of("ARG")[0] == "BASE=python:3.11-slim"
    minor = tuple(map(int, of("ARG")[0].split(":")[1].split("-")[0].split(".")))
    assert (3, 10) <= minor < (3, 13)
    assert PROJECT["project"]["requires-python"] == ">=3.10,<3.13"
    assert not re.search(r"amd64|arm64|x86|aarch64", (CONTAINER / "Dockerfile").read_text())


def test_it_runs_as_nobody_in_particular() -> None:
    users = [one.rest for one in final_stage() if one.word == "USER"]
    assert users[-1] == "1000:0"
    assert [one.rest for one in final_stage() if one.word == "VOLUME"] == ["/var/lib/msx-serve"]
    environment = next(one.rest for one in final_stage() if one.word == "ENV")
    assert "MSX_STATE_DIR=/var/lib/msx-serve" in environment


def test_torchserves_commands_have_their_names() -> None:
    (build,) = [one for one in of("RUN") if "pip wheel" in one]
    links = dict(re.findall(r"([\w-]+)=(msx-[\w-]+)", build))
    assert links == NAMES


def test_folders_are_those_of_torchserves_image(tmp_path: Path) -> None:
    home = "/home/model-server"
    (make,) = [one for one in of("RUN") if "useradd" in one]
    assert {f"{home}/{name}" for name in ("model-store", "wf-store", "logs")} <= set(make.split())
    assert re.search(rf"useradd .*--home-dir {home} .*model-server", make)
    assert [one.rest for one in final_stage() if one.word == "WORKDIR"] == [home]
    text = (CONTAINER / "config.properties").read_text()
    assert f"model_store={home}/model-store\nworkflow_store={home}/wf-store\n" in text
    copied = next(rest for rest in of("COPY") if "config.properties" in rest)
    assert copied.endswith(f"{home}/config.properties")


def test_the_queue_is_as_long_as_everywhere(tmp_path: Path) -> None:
    given = {"model_store": tmp_path, "workflow_store": tmp_path}
    config, _ = load_server_config(given, CONTAINER / "config.properties", image_environment())
    assert config.job_queue_size == ServerConfig().job_queue_size == 100


def test_temporary_files_lie_in_tmp() -> None:
    assert not {"TMPDIR", "TEMP", "TMP"} & image_environment().keys()
    assert PidFile(image_environment()).path.parent == Path("/tmp")


def test_its_health_is_asked_without_a_key() -> None:
    (check,) = of("HEALTHCHECK")
    command = json.loads(check.partition("CMD ")[2])
    assert command == ["msx-serve", "--status"]
    assert any(option.name == "status" for option in main.params)
    assert of("STOPSIGNAL") == ["SIGTERM"]


def test_scripts_are_in_order() -> None:
    (entry,) = of("ENTRYPOINT")
    assert json.loads(entry) == ["/usr/local/bin/entrypoint.sh"]
    assert subprocess.run(["sh", "-n", CONTAINER / "entrypoint.sh"]).returncode == 0
    assert json.loads(of("CMD")[0]) == ["serve"]


@pytest.mark.parametrize("has_python", [True, False])
def test_a_base_of_cuda_gets_a_python(has_python: bool, tmp_path: Path) -> None:
    """NVIDIA's images have none. Both stages have the same, for the environment of one is copied into the other."""
    install = next(one for one in of("RUN") if one.startswith("command -v python3"))
    asked = tmp_path / "asked"
    for name in ("apt-get", "rm", *(["python3"] if has_python else [])):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "$*" >>{asked}\n')
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(["/bin/sh", "-c", install], env={"PATH": str(tmp_path)}, capture_output=True)
    assert done.returncode == 0
    words = asked.read_text().split() if asked.exists() else []
    assert ({"python3", "python3-venv"} <= set(words)) == (not has_python)


def test_gpus_are_found_where_a_container_is_given_some() -> None:
    """`utility` is NVML, `compute` CUDA. A default of NVIDIA_VISIBLE_DEVICES would open all GPUs to every container."""
    environment = image_environment()
    assert set(environment["NVIDIA_DRIVER_CAPABILITIES"].split(",")) == {"compute", "utility"}
    assert "NVIDIA_VISIBLE_DEVICES" not in environment
