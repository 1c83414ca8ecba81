"""The examples of texts and of time series: what does not fit is refused without harm to the others. That of texts is
trained."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from msx_sdk.testing import LocalModel
from tests.mindspore_scripts import run_mindspore

pytest.importorskip("mindspore")
pytestmark = pytest.mark.mindspore

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = {"topics": ["tokens.py"], "forecast": ["series.py"]}


def serve(name: str, folder: Path) -> LocalModel:
    """With what its training has written to the folder."""
    for file in ["handler.py", *FILES[name]]:
        (folder / file).write_text((EXAMPLES / name / file).read_text())
    config = yaml.safe_load((EXAMPLES / name / "model-config.yaml").read_text())
    return LocalModel("handler.py", folder, config=config, manifest={"model": {"serializedFile": f"{name}.mindir"}})


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalModel]:
    folder = tmp_path_factory.mktemp("topics")
    command = [sys.executable, str(EXAMPLES / "topics" / "train.py"), "--out", str(folder)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    with serve("topics", folder) as model:
        yield model


UNTRAINED = """
import json, sys
from pathlib import Path
sys.path.insert(0, {example!r})
import mindspore as ms
from train import AHEAD, HISTORY, ForecastNet
net = ForecastNet()
rows = ms.Tensor(shape=[None, HISTORY], dtype=ms.float32)
net.set_inputs(rows)
ms.export(net, rows, file_name="forecast", file_format="MINDIR")
Path("errors.json").write_text(json.dumps([1.0] * AHEAD))
"""


@pytest.fixture(scope="module")
def forecast(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalModel]:
    """Its network, not trained; the commands of its README train it (tests/e2e/test_pages.py)."""
    folder = tmp_path_factory.mktemp("forecast")
    (folder / "untrained.py").write_text(UNTRAINED.format(example=str(EXAMPLES / "forecast")))
    run_mindspore(folder / "untrained.py", folder=folder)
    with serve("forecast", folder) as model:
        yield model


def test_topics_of_several_requests_in_one_batch(topics: LocalModel) -> None:
    asked = [
        {"texts": ["Snow covers the valley", "the coach won the match again"]},
        {"texts": ["xyzzy"]},
        {"texts": []},
        {"texts": ["the server runs out of memory"]},
        {"text": "an unknown member"},
    ]
    first, unknown, none, last, other = topics.predict(asked)
    assert [it["topic"] for it in first.json()["topics"]] == ["weather", "sport"]
    assert [it["topic"] for it in last.json()["topics"]] == ["computers"]
    assert [reply.status for reply in (unknown, none, other)] == [400] * 3
    assert "the model knows no word of 'xyzzy'" in str(unknown.failure)
    assert "texts: expected 1 to 64 texts, got 0" in str(none.failure)


def test_forecasts_of_several_series_in_one_batch(forecast: LocalModel) -> None:
    flat, day = [7.0] * 60, [500 + 100 * (hour % 24 < 12) for hour in range(48)]
    asked = [day, [1.0] * 47, flat, [*day, 1e300]]
    good, short, far, large = forecast.predict([{"hours": hours} for hours in asked])
    assert (len(good.json()["hours"]), len(good.json()["error"])) == (12, 12)
    assert all(abs(hour - 7) < 1 for hour in far.json()["hours"])
    assert (short.status, large.status) == (400, 400)
    assert "hours[48]: expected a number between -1e+15 and 1e+15, got 1e+300" in str(large.failure)
    assert "hours: expected 48 to 10000 numbers, got 47" in str(short.failure)
