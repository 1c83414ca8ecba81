"""As a new user on a clean machine: the three commands of the README, and a prediction in the playground."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.browser import browser, needs_browser
from tests.e2e.server import wait_until
from tests.pages import ROOT, blocks

pytestmark = [pytest.mark.mindspore, pytest.mark.long, needs_browser, pytest.mark.timeout(400)]

EXPORT = """
import mindspore as ms
from mindspore import Tensor, nn

net, x = nn.Dense(4, 3, weight_init="ones", bias_init="zeros"), Tensor(shape=[None, 4], dtype=ms.float32)
net.set_inputs(x)
ms.export(net, x, file_name="net", file_format="MINDIR")
"""


def commands() -> tuple[str, ...]:
    section = (ROOT / "README.md").read_text().partition("## Your own model in three commands")[2].partition("\n## ")[0]
    return blocks(section)[0].commands


def test_three_commands_lead_to_a_prediction(tmp_path: Path) -> None:
    environment, install, serve = commands()
    build_wheel(tmp_path / "wheels")
    subprocess.run([sys.executable, "-c", EXPORT], cwd=tmp_path, check=True, capture_output=True)
    home = clean_environment(tmp_path)
    bash(environment, tmp_path, home)
    bash(f"{environment} && {install}", tmp_path, home)
    lend_packages(tmp_path / ".venv")
    with foreground(f". .venv/bin/activate && exec {serve} --port 0 --wait", tmp_path, home) as said:
        address = wait_until(lambda: re.search(r"try it +(\S+)", said.read_text()), "the addresses", said.read_text)
        key = json.loads((tmp_path / "key_file.json").read_text())["inference"]["key"]
        with browser() as tab:
            tab.open(address[1])
            tab.wait_for("This server asks for its inference key")
            tab.write("#key-inference", key)
            tab.press("Use this key")
            tab.wait_for("Content type")
            wait_until(lambda: tab.one("#body").get_attribute("value"), "an example of the inputs")
            tab.write("#body", '{"x": [[1, 2, 3, 4]]}')
            tab.press("Send")
            tab.wait_for("whole answer after")
            assert "10" in tab.one("msx-answer pre").text
            assert tab.script_errors() == []


def build_wheel(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*command, str(ROOT)], check=True)


def clean_environment(folder: Path) -> dict[str, str]:
    """Environment of a user whose pip finds the wheel, and asks no index."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "MSX_", "VIRTUAL_ENV"))}
    kept["PATH"] = os.pathsep.join(
        it for it in kept["PATH"].split(os.pathsep) if it != str(Path(sys.executable).parent)
    )
    wheels = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_FIND_LINKS": str(folder / "wheels")}
    return kept | wheels | {"HOME": str(folder), "PIP_CONFIG_FILE": "/dev/null"}


def lend_packages(environment: Path) -> None:
    """MindSpore and the other packages, which take minutes to install. A folder in a .pth is searched, but its own
    .pth files are not read: this checkout is not among them."""
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")


def bash(command: str, folder: Path, env: dict[str, str]) -> None:
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"$ {command}\n{done.stdout}\n{done.stderr}"


@contextmanager
def foreground(command: str, folder: Path, env: dict[str, str]) -> Iterator[Path]:
    output = folder / "output.txt"
    with output.open("w") as file:
        process = subprocess.Popen(["bash", "-c", command], cwd=folder, env=env, stdout=file, stderr=subprocess.STDOUT)
    try:
        yield output
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0, output.read_text()
