"""Paths of models, and those below /v1/ that other models answer once they are loaded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from msx_core.generation import Capabilities
from msx_frontend.management_errors import Conflict
from msx_frontend.models.owned_paths import OwnedPaths
from msx_frontend.models.versions.model_version import ModelVersion
from msx_net.model_names import ModelNames

EMBEDS = Capabilities(embed=True)


class Server:
    """Has /v1/models itself, and /v1/embeddings for models that embed."""

    def taken_by(self, path: str) -> tuple[str, ...] | None:
        return {"/v1/models": (), "/v1/embeddings": ("rerank", "embed")}.get(path)


class Bench:
    def __init__(self) -> None:
        self.versions: list[ModelVersion] = []
        self.paths = OwnedPaths(lambda: self.versions, ModelNames())
        self.paths.keep_free(Server())

    def add(self, name: str, *paths: str, offered: Capabilities | None = None) -> None:
        version = made(name, *paths, offered=offered)
        self.paths.check(version)
        self.versions.append(version)
        self.paths.find()

    def refused(self, name: str, *paths: str) -> str:
        with pytest.raises(Conflict) as raised:
            self.paths.check(made(name, *paths))
        return raised.value.message


def made(name: str, *paths: str, offered: Capabilities | None = None) -> ModelVersion:
    parts: Any = SimpleNamespace(
        source=SimpleNamespace(name=name), schema=SimpleNamespace(capabilities=offered), paths=[*paths]
    )
    return cast(ModelVersion, parts)


def test_a_path_that_no_loaded_model_answers() -> None:
    bench = Bench()
    bench.add("loading", offered=None)
    bench.add("chats", offered=Capabilities(generate=True))
    bench.add("own", "/v1/embeddings", "/v1/inference")
    assert bench.paths.owners == {"/v1/embeddings": "own", "/v1/inference": "own"}
    assert bench.refused("more", "/v1/embeddings") == (
        "Path /v1/embeddings of model more (routes) is already that of model own."
    )
    assert bench.refused("more", "/v1/models") == "Path /v1/models of model more (routes) is one of the server's own."


def test_a_path_that_a_loaded_model_answers() -> None:
    bench = Bench()
    bench.add("bert", offered=EMBEDS)
    assert bench.refused("own", "/v1/embeddings") == (
        "Path /v1/embeddings of model own (routes) is answered by model bert (embed), which is loaded: unregister it "
        "first."
    )


def test_a_model_that_is_loaded_later() -> None:
    bench = Bench()
    bench.add("own", "/v1/embeddings")
    assert bench.paths.loaded("bert", EMBEDS) == (
        "Model bert answers /v1/embeddings (embed), which is a path of model own (routes): unregister that one, or "
        "give its route another path."
    )
    assert bench.paths.loaded("own", EMBEDS) == bench.paths.loaded("chats", Capabilities(generate=True)) == ""
    bench.versions.clear()
    bench.paths.find()
    assert bench.paths.loaded("bert", EMBEDS) == ""
