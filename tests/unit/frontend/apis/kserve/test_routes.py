from __future__ import annotations

import pytest

from msx_frontend.apis.kserve.answers import Answers
from msx_frontend.apis.kserve.routes import EXACT, OF_MODEL, OF_REPOSITORY, find


@pytest.mark.parametrize(
    ("path", "answer", "model", "version"),
    [
        ("/v2", "server", "", None),
        ("/v2/health/ready", "ready", "", None),
        ("/v2/models", "models", "", None),
        ("/v2/models/stats", "all_statistics", "", None),
        ("/v2/models/m", "model", "m", None),
        ("/v2/models/m/versions/1.0", "model", "m", "1.0"),
        ("/v2/models/m/versions/1.0/infer", "infer", "m", "1.0"),
        ("/v2/models/m/ready", "model_ready", "m", None),
        ("/v2/repository/index", "index", "", None),
        ("/v2/repository/models/m/load", "load", "m", None),
    ],
)
def test_paths(path: str, answer: str, model: str, version: str | None) -> None:
    found = find(path)
    assert found is not None
    assert (found.route.answer, found.model, found.version) == (answer, model, version)


@pytest.mark.parametrize("path", ["/v2/x", "/v2/models/m/x", "/v2/models/m/versions", "/v2/repository/models/m/x"])
def test_other_paths(path: str) -> None:
    assert find(path) is None


def test_every_route_has_its_answer_and_its_key() -> None:
    routes = [*EXACT.values(), *OF_MODEL.values(), *OF_REPOSITORY.values()]
    assert all(hasattr(Answers, route.answer) for route in routes)
    assert {route.answer for route in routes if route.key is None} == {"live", "ready"}
    assert {route.answer for route in routes if route.key == "management"} == {"load", "unload"}
