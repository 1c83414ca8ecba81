"""OpenAI's API, below /v1."""

from __future__ import annotations

from msx_frontend.errors import ServiceError
from msx_frontend.generation.errors import as_json, openai_failure
from msx_frontend.net.http.family import Failure, Family


def openai() -> Family:
    return Family("OpenAI", (), told, owns=("v1",))


def told(error: ServiceError) -> Failure:
    return as_json(openai_failure(error))
