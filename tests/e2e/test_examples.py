"""The commands of the examples' READMEs, as they stand there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.e2e.checkpoint import write_qwen
from tests.e2e.server import FREE_PORTS, wait_until
from tests.plugins import install

pytestmark = [pytest.mark.e2e, pytest.mark.mindspore]

EXAMPLES = Path(__file__).parents[2] / "examples"


class Shell:
    """Runs a README's commands in a copy of its folder. The server is told to take free ports by its environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        config = folder / "free-ports.properties"
        own = folder / "config.properties"
        config.write_text(FREE_PORTS + (own.read_text() if own.exists() else ""))
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.env = {**os.environ, "PATH": path, "TS_CONFIG_FILE": str(config), "XDG_STATE_HOME": str(folder / "state")}

    def run(self, command: str) -> str:
        if command.startswith("python client.py"):
            command += f" --url {self.address}/predictions/{self.folder.name}"
        elif command.startswith("curl"):
            command = command.replace("http://127.0.0.1:8080", self.address)
            command = command.replace("http://127.0.0.1:8081", self.info["management"])
        elif "chat.py" in command:
            command += f" --url {self.address}"
        done = subprocess.run(command, shell=True, cwd=self.folder, env=self.env, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    @property
    def info(self) -> dict[str, str]:
        info: dict[str, str] = json.loads((self.folder / ".msx" / "server.json").read_text())
        return info

    @property
    def address(self) -> str:
        """Where it listens, once the model is ready."""
        address = self.info["inference"]
        wait_until(lambda: httpx.get(f"{address}/readyz").status_code == 200, "the model is ready")
        return address


def commands(example: str) -> list[str]:
    block = re.search(r"```sh\n(.*?)```", (EXAMPLES / example / "README.md").read_text(), re.S)
    assert block is not None
    lines = block[1].replace("\\\n", " ").splitlines()
    return [line for line in lines if not line.startswith("pip install")]


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        ("digits", ["seven.png    seven", "zero.png     zero"]),
        ("llama", ["Exceptions"]),
        ("matmul", ["-48"]),
        ("qwen", []),
        ("workflow", ['"language": "de"', '"mood": "good"', "registered and scaled", "unregistered"]),
        ("plugin", ['"MaxPayloadInMB": 6', "-startup.cfg", "-shutdown.cfg"]),
    ],
)
def test_readme(example: str, expected: list[str], tmp_path: Path) -> None:
    folder = tmp_path / example
    shutil.copytree(EXAMPLES / example, folder, ignore=shutil.ignore_patterns("build", "__pycache__", ".msx"))
    if example == "qwen":
        write_qwen(folder / "checkpoint")
        shutil.copytree(EXAMPLES / "llama", tmp_path / "llama", ignore=shutil.ignore_patterns("*.safetensors"))
    if example == "plugin":
        install(folder / "plugins", folder)
    shell = Shell(folder)
    output = ""
    try:
        for command in commands(example):
            output += shell.run(command)
    finally:
        if (folder / ".msx" / "server.json").exists():
            shell.run("msx-serve --stop")
    for text in expected:
        assert text in output
    assert "MSX has stopped." in output
