"""The same requests with the real vLLM, in the interpreter that MSX_VLLM_PYTHON names."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.vllm.plugged import TOLD, install_plugin
from tests.vllm.served import ENV, NEEDED, PYTHON
from tests.vllm.tiny_model import make_adapter, make_tiny_model
from tests.vllm.tiny_vision_model import make_tiny_vision_model

ROOT = Path(__file__).parents[2]
OWN_NAMES = ("names", "arguments", "families")
PATHS = (ROOT, ROOT / "sdk", ROOT / "backend")

pytestmark = [pytest.mark.long, pytest.mark.skipif(not PYTHON, reason=NEEDED)]


def require_torchvision() -> None:
    """Skip where the interpreter has none that can be imported."""
    if subprocess.run([PYTHON, "-c", "import torchvision"], capture_output=True).returncode:
        pytest.skip("the interpreter of MSX_VLLM_PYTHON has no torchvision for its torch (docs/interpreters.md)")


def run(call: str, folder: Path, tmp_path: Path, *paths: Path) -> list[str]:
    """`paths`: more of the interpreter's."""
    result = tmp_path / "result.json"
    env = {**os.environ, **ENV, "PYTHONPATH": os.pathsep.join(map(str, (*PATHS, *paths)))}
    subprocess.run([PYTHON, "-m", "tests.vllm.real", call, str(folder), str(result)], env=env, check=True, cwd=tmp_path)
    found: list[str] = json.loads(result.read_text())
    return found


@pytest.fixture(scope="module")
def own_names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Differences between vLLM and what is read, stubbed or known of it. One process: vLLM is imported for seconds."""
    folder = tmp_path_factory.mktemp("names")
    found = [one.partition(" ") for one in run("own_names", folder, folder)]
    return {kind: [name for known, _, name in found if known == kind] for kind in OWN_NAMES}


@pytest.mark.parametrize("kind", OWN_NAMES)
def test_names_are_vllms_own(own_names: dict[str, list[str]], kind: str) -> None:
    assert own_names[kind] == []


@pytest.mark.timeout(300)
def test_a_platform_of_a_plugin(tmp_path: Path) -> None:
    install_plugin(tmp_path)
    assert run("plugged", tmp_path, tmp_path, tmp_path) == []


@pytest.mark.timeout(1200)
def test_an_engine_on_the_platform_of_a_plugin(tmp_path: Path) -> None:
    """It writes what it writes on a CPU, and sleeps, as vLLM does on devices."""
    folder = make_tiny_model(tmp_path / "model")
    (text,) = run("greedy", folder, tmp_path)
    install_plugin(tmp_path)
    assert run("slept", folder, tmp_path, tmp_path) == ["fake", *[text] * 3, *TOLD]


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
