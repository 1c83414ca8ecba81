"""Adapters of requests, with a stub of vLLM."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msx_sdk.errors import HandlerLoadError, InvalidInput
from msx_sdk.generation import AdapterFiles, LoadAdapterReply, LoadAdapterRequest
from msx_sdk.testing import LocalModel
from msx_vllm.handler import VllmHandler
from tests.vllm.cases import Refusal, ask

CONFIG: dict[str, Any] = {"adapters": {"loadable": True, "maxRank": 10, "maxLoras": 3}}


def adapter(folder: Path, rank: object = 4, width: int = 6) -> Path:
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps({"r": rank}))
    shapes = {"lora_A": [rank, width], "lora_B": [8, rank]}
    members = {f"base_model.model.layer.{name}.weight": {"shape": shape} for name, shape in shapes.items()}
    write(folder / "adapter_model.safetensors", members)
    return folder


def write(path: Path, members: dict[str, Any]) -> None:
    header = json.dumps(members).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)


@pytest.fixture
def model(stub: None, here: Path) -> Iterator[LocalModel]:
    adapter(here / "adapters" / "sql")
    write(here / "model.safetensors", {"__metadata__": {}, "layer.weight": {"shape": [8, 6]}})
    with LocalModel(VllmHandler, here, config=CONFIG) as model:
        yield model


def engine_of(model: LocalModel) -> Any:
    return model.handler.owner.llm._engine


def check(model: LocalModel, folder: Path) -> LoadAdapterReply:
    made = model.handler.owner.load_adapter(LoadAdapterRequest(name="new", folder=str(folder)), model.context)
    reply: LoadAdapterReply = model._loop.run_until_complete(made)
    return reply


def test_prompts_of_a_model_with_adapters_are_not_scored(model: LocalModel) -> None:
    request: dict[str, Any] = {"prompt": "abc", "stream": False}
    refusal = ask(model, request, {"max_tokens": 1, "prompt_logprobs": True})
    assert isinstance(refusal, Refusal)
    assert refusal.status == 400
    assert refusal.message.startswith("prompt_logprobs: vLLM scores no prompts of a model that has room for adapters")
    assert not isinstance(ask(model, request, {"max_tokens": 1, "logprobs": 1}), Refusal)


def test_room_for_adapters_follows_from_the_configuration(model: LocalModel) -> None:
    args = engine_of(model).args
    assert (args.enable_lora, args.max_loras, args.max_lora_rank) == (True, 3, 16)
    found = model.handler.owner.capabilities()
    assert (found.adapters, found.load_adapter) == (("sql",), True)


def test_a_request_has_its_adapter(model: LocalModel) -> None:
    ask(model, {"prompt": "a", "adapter": "sql"}, {})
    ask(model, {"prompt": "a"}, {})
    chosen, none = engine_of(model).adapters[-2:]
    assert (chosen.lora_path, none) == (str(model.context.model_dir / "adapters" / "sql"), None)
    assert len(engine_of(model).taken) == 1


def test_an_unknown_adapter_is_named(model: LocalModel) -> None:
    assert ask(model, {"prompt": "a", "adapter": "x"}, {}) == Refusal(404, "The model has no adapter 'x'; it has sql.")


def test_an_adapter_that_was_loaded_meanwhile(model: LocalModel, here: Path) -> None:
    folder = adapter(here / "late")
    reply = check(model, folder)
    files = AdapterFiles(id="7", folder=str(folder), stamp=reply.stamp)
    assert reply.rank == 4
    assert not isinstance(ask(model, {"prompt": "a", "adapter": "new", "adapter_files": files}, {}), Refusal)
    (folder / "adapter_model.safetensors").write_bytes(b"others!")
    refusal = ask(model, {"prompt": "a", "adapter": "new", "adapter_files": files}, {})
    assert refusal == Refusal(503, "adapter new: its files have changed since it was loaded; load it again")


@pytest.mark.parametrize(
    ("name", "rank", "message"),
    [
        ("high", 17, r"adapter new: r is 17, above vllm.max_lora_rank \(16\), which is fixed when a worker starts"),
        ("broken", 4, "adapter new: vLLM does not take it: its weights do not fit"),
        ("odd", "x", "adapter new: r: 'x' of adapter_config.json is not an integer of 1 or more"),
    ],
)
def test_an_adapter_that_is_refused(model: LocalModel, here: Path, name: str, rank: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        check(model, adapter(here / name, rank))


def test_an_adapter_of_another_model_is_refused(model: LocalModel, here: Path) -> None:
    message = r"adapter new: base_model.model.layer.lora_A.weight has the shape \[4, 7\], which does not fit the model"
    with pytest.raises(InvalidInput, match=message):
        check(model, adapter(here / "wide", width=7))
    (here / "wide" / "adapter_model.safetensors").write_bytes(b"weights")
    with pytest.raises(InvalidInput, match=r"wide: adapter_model\.safetensors is not a file of safetensors"):
        check(model, here / "wide")


def test_a_packed_adapter_that_vllm_does_not_take_fails_the_load(stub: None, here: Path) -> None:
    adapter(here / "adapters" / "broken")
    with pytest.raises(HandlerLoadError, match="adapter broken: vLLM does not take it"), LocalModel(VllmHandler, here):
        pass
