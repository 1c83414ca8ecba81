"""The APIs that the server speaks over HTTP: the one list. A new API is a folder under `apis/` and a line here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msx_frontend.apis.kserve.answers import Answers
from msx_frontend.apis.kserve.family import kserve_v2
from msx_frontend.apis.kserve.repository import Repository
from msx_frontend.apis.openai.family import openai
from msx_frontend.apis.torchserve.predictions import Predictions
from msx_frontend.models.health import Health
from msx_frontend.models.registry import Registry
from msx_frontend.net.http.family import Family


class Parts(NamedTuple):
    """What families are made of. `max_response_size` is in bytes."""

    registry: Registry
    health: Health
    repository: Repository
    predictions: Predictions
    max_response_size: int


def families(parts: Parts) -> Sequence[Family]:
    """TorchServe's first: it says errors of paths that belong to no family."""
    answers = Answers(parts.registry, parts.health, parts.repository)
    return (
        parts.predictions.family(),
        openai(),
        kserve_v2(answers, parts.registry.submit, parts.max_response_size),
    )
