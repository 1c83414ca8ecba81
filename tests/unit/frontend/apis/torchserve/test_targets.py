"""Which model a path means."""

from __future__ import annotations

import pytest

from msx_frontend.apis.torchserve.targets import Target, target_of
from msx_frontend.job import EXPLAIN, PREDICT

OWN = (("explain", "False"), ("url_path", ""))


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/predictions/m", Target("m", headers=OWN)),
        ("/predictions/m/2/a/b", Target("m", "2", headers=(OWN[0], ("url_path", "a/b")))),
        ("/explanations/m/2", Target("m", "2", EXPLAIN, (("explain", "True"), OWN[1]))),
        ("/invocations", Target(None, takes_query=True)),
        ("/models/m/invoke", Target("m", takes_query=True)),
        ("/m/predict", Target("m", takes_query=True)),
        ("/m/2/predict", Target("m", "2", takes_query=True)),
        ("/v1/models/m:predict", Target("m", None, PREDICT, OWN[:1])),
        ("/v1/models/m:explain", Target("m", None, EXPLAIN, (("explain", "True"),))),
    ],
)
def test_predictions(path: str, target: Target) -> None:
    assert target_of(path) == target


@pytest.mark.parametrize(
    "path",
    [
        "/predictions",
        "/predictions//1.0",
        "/prediction/m",
        "/ping",
        "/invocationsx",
        "/x/predictions/m",
        "/models/m/invokes",
        "/models/m/predict",
        "/v1/models/m",
        "/v1/models/m:generate",
        "/v2/models/predict",
        "/a/b/c/predict",
        "/predict",
    ],
)
def test_other_paths(path: str) -> None:
    assert target_of(path) is None
