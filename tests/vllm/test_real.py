"""The same requests with the real vLLM, in the interpreter that MSX_VLLM_PYTHON names."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.vllm.plugged import install_plugin
from tests.vllm.served import NEEDED, PYTHON
from tests.vllm.tiny_model import make_adapter, make_tiny_model
from tests.vllm.tiny_vision_model import make_tiny_vision_model

ROOT = Path(__file__).parents[2]
PATHS = (ROOT, ROOT / "sdk", ROOT / "backend")

pytestmark = [pytest.mark.long, pytest.mark.skipif(not PYTHON, reason=NEEDED)]


def require_torchvision() -> None:
    """Skip where the interpreter has none that can be imported."""
    if subprocess.run([PYTHON, "-c", "import torchvision"], capture_output=True).returncode:
        pytest.skip("the interpreter of MSX_VLLM_PYTHON has no torchvision for its torch (docs/interpreters.md)")


def run(call: str, folder: Path, tmp_path: Path, *paths: Path) -> list[str]:
    """`paths`: more of the interpreter's."""
    result = tmp_path / "result.json"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*PATHS, *paths)))}
    subprocess.run([PYTHON, "-m", "tests.vllm.real", call, str(folder), str(result)], env=env, check=True, cwd=tmp_path)
    found: list[str] = json.loads(result.read_text())
    return found


@pytest.mark.parametrize("call", ["names", "arguments", "families"])
def test_names_are_vllms_own(tmp_path: Path, call: str) -> None:
    assert run(call, tmp_path, tmp_path) == []


@pytest.mark.timeout(300)
def test_a_platform_of_a_plugin(tmp_path: Path) -> None:
    install_plugin(tmp_path)
    assert run("plugged", tmp_path, tmp_path, tmp_path) == []


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("call", "labels"), [("vectors", ()), ("scores", ("bad", "good"))])
def test_vectors_and_scores(tmp_path: Path, call: str, labels: tuple[str, ...]) -> None:
    assert run(call, make_tiny_model(tmp_path / "model", labels), tmp_path) == []


@pytest.mark.timeout(300)
def test_parsers_of_calls_and_reasoning(tmp_path: Path) -> None:
    assert run("parsers", make_tiny_model(tmp_path / "model"), tmp_path) == []


@pytest.mark.timeout(1200)
def test_adapters(tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "model")
    make_adapter(folder / "adapters" / "large")
    assert run("adapters", folder, tmp_path) == []


@pytest.mark.timeout(1200)
def test_requests_that_every_engine_answers_alike(tmp_path: Path) -> None:
    assert run("answers", make_tiny_model(tmp_path / "model"), tmp_path) == []


@pytest.mark.timeout(1200)
def test_images(tmp_path: Path) -> None:
    require_torchvision()
    assert run("images", make_tiny_vision_model(tmp_path / "model"), tmp_path) == []
