"""The example trains; the built-in handler and its own one classify the images it wrote, with its own config."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from msx_sdk.testing import LocalModel

for needed in ("mindspore", "PIL"):
    pytest.importorskip(needed)

pytestmark = pytest.mark.mindspore

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits"


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("digits")
    command = [sys.executable, str(EXAMPLE / "train.py"), "--out", str(folder / "build")]
    trained = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    assert "images that training did not see" in trained.stdout
    shutil.copy(EXAMPLE / "handler.py", folder / "build")
    return folder / "build"


@pytest.fixture(scope="module", params=["image_classifier", "handler.py"])
def model(request: pytest.FixtureRequest, build: Path) -> Iterator[LocalModel]:
    config = yaml.safe_load((EXAMPLE / "model-config.yaml").read_text())
    manifest = {"model": {"serializedFile": "digits.mindir"}}
    with LocalModel(request.param, build, config=config, manifest=manifest) as model:
        yield model


def test_ten_images_in_one_batch(build: Path, model: LocalModel) -> None:
    names = list(json.loads((build / "index_to_name.json").read_text()).values())
    replies = [reply.json() for reply in model.predict([(build / f"{name}.png").read_bytes() for name in names])]
    assert [len(reply) for reply in replies] == [3] * 10
    right = [name == next(iter(reply)) for name, reply in zip(names, replies, strict=True)]
    assert sum(right) >= 9
