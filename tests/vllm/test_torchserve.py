"""TorchServe's handler of vLLM: its section of model-config.yaml, with the stub of vLLM."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from msx_core.config.vllm_section import DECIDED
from msx_sdk.errors import HandlerLoadError
from msx_sdk.request import Headers, InferenceRequest, Part
from msx_sdk.testing import LocalModel
from msx_torchserve.packages.ts.torch_handler._vllm_settings import READ
from msx_torchserve.packages.ts.torch_handler.vllm_handler import VLLMHandler
from tests.vllm.test_adapters import adapter, write

MODEL = "model/snapshots/0a1b"


@pytest.fixture
def folder(stub: None, here: Path) -> Path:
    (here / MODEL).mkdir(parents=True)
    return here


def config(engine: dict[str, Any] | None = None, **section: Any) -> dict[str, Any]:
    return {"handler": {"model_path": MODEL, "vllm_engine_config": {"max_model_len": 250, **(engine or {})}, **section}}


def engine_of(model: LocalModel) -> Any:
    return model.handler.owner.llm._engine


def test_the_section_reaches_vllm(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    engine = {"max_num_seqs": 16, "served_model_name": ["a", "b"], "enforce_eager": True}
    with LocalModel(VLLMHandler, folder, config=config(engine)) as model:
        args = engine_of(model).args
    assert (args.model, args.max_model_len, args.max_num_seqs) == (str(folder / MODEL), 250, 16)
    assert (args.enforce_eager, args.served_model_name) == (True, None)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_the_model_of_the_engines_section_goes_before_the_path(folder: Path) -> None:
    (folder / "other").mkdir()
    with LocalModel(VLLMHandler, folder, config=config({"model": "other"})) as model:
        assert engine_of(model).args.model == str(folder / "other")


def test_arguments_of_msx_go_before_those_of_torchserve(folder: Path) -> None:
    with LocalModel(VLLMHandler, folder, config={**config(), "vllm": {"max-model-len": 64}}) as model:
        assert engine_of(model).args.max_model_len == 64


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        ("download_dir", "the server fetches the model's files, and its folder is the model"),
        ("trust_remote_code", "it would run code that the files of a model name"),
        ("max_modellen", "vLLM's engine has no such argument; did you mean max_model_len?"),
        ("worker_use_ray", "vLLM's engine has no such argument"),
    ],
)
def test_what_has_no_effect_is_a_warning(
    folder: Path, caplog: pytest.LogCaptureFixture, member: str, reason: str
) -> None:
    with LocalModel(VLLMHandler, folder, config=config({member: True})):
        pass
    assert f"handler.vllm_engine_config.{member}: has no effect: {reason}" in caplog.messages


@pytest.mark.parametrize("member", sorted(DECIDED.keys() - {*READ}))
def test_what_the_server_decides_is_a_warning_with_the_reason(
    folder: Path, caplog: pytest.LogCaptureFixture, member: str
) -> None:
    with LocalModel(VLLMHandler, folder, config=config({member: "x"})):
        pass
    assert f"handler.vllm_engine_config.{member}: has no effect: {DECIDED[member]}" in caplog.messages


def test_code_that_a_value_names_is_refused(folder: Path) -> None:
    section = config({"structured_outputs_config": {"reasoning_parser_plugin": "/a.py"}})
    refusal = "vllm.structured_outputs_config.reasoning_parser_plugin: a model cannot give it: it would run code"
    with pytest.raises(HandlerLoadError, match=refusal), LocalModel(VLLMHandler, folder, config=section):
        pass


def test_a_value_that_vllm_does_not_take_is_refused_in_its_words(folder: Path) -> None:
    with (
        pytest.raises(HandlerLoadError, match="--max-model-len: invalid human value: 'long'"),
        LocalModel(VLLMHandler, folder, config=config({"max_model_len": "long"})),
    ):
        pass


def test_a_device_that_is_not_there_is_a_warning(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with LocalModel(VLLMHandler, folder, config={**config(), "deviceType": "gpu"}):
        pass
    assert "deviceType: gpu: vLLM has none in this worker, and computes on the CPU" in caplog.messages


def test_adapters_by_their_names(folder: Path) -> None:
    adapter(folder / "adapters" / "deep" / "one", rank=9)
    write(folder / MODEL / "model.safetensors", {"layer.weight": {"shape": [8, 6]}})
    section = config(adapters={"adapter_1": "adapters/deep/one"})
    with LocalModel(VLLMHandler, folder, config=section) as model:
        assert model.handler.owner.capabilities().adapters == ("adapter_1",)
        assert (engine_of(model).args.enable_lora, engine_of(model).args.max_lora_rank) == (True, 16)


@pytest.mark.parametrize("template", ["chat.txt", "{{ messages }}{{ flag }}"])
def test_a_chat_template_is_a_file_or_the_source(folder: Path, template: str) -> None:
    (folder / "chat.txt").write_text("{{ messages }}{{ flag }}")
    with LocalModel(VLLMHandler, folder, config=config(chat_template=template)) as model:
        prompts = model.handler.owner.llm.prompts
        assert (prompts.template, prompts.variables) == ("{{ messages }}{{ flag }}", ("flag",))


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({}, r"handler\.model_path: is needed"),
        (
            {"model_path": "org/name"},
            r"handler\.model_path: 'org/name' is no folder of this model, and a worker fetches",
        ),
        ({"model_path": "/srv/model"}, r"handler\.model_path: '/srv/model' is outside of the model's folder"),
        ({"model_path": "../model"}, r"handler\.model_path: '\.\./model' is outside of the model's folder"),
        ({"model_path": 5}, r"handler\.model_path: 5 is not a path"),
        ({"vllm_engine_config": 5}, r"handler\.vllm_engine_config: 5 is not a mapping"),
        ({"model_path": MODEL, "adapters": {"a": "/b"}}, r"handler\.adapters\.a: '/b' is outside"),
        ({"model_path": MODEL, "adapters": {"a": "b"}}, r"adapter a: adapter_config\.json cannot be read"),
        ({"model_path": MODEL, "chat_template": "no.txt"}, r"handler\.chat_template: 'no\.txt' is neither a template"),
    ],
)
def test_a_section_that_is_refused(folder: Path, section: dict[str, Any], message: str) -> None:
    with (
        pytest.raises(HandlerLoadError, match=message),
        LocalModel(VLLMHandler, folder, config={"handler": section}),
    ):
        pass


def test_a_link_may_stand_for_a_folder_elsewhere(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    (folder / "linked").symlink_to(tmp_path_factory.mktemp("elsewhere"))
    with LocalModel(VLLMHandler, folder, config=config({"model": "linked"})) as model:
        assert engine_of(model).args.model == str(folder / "linked")


def test_a_chat_template_has_a_largest_size(folder: Path) -> None:
    (folder / "chat.txt").write_bytes(b" " * (1 << 20) + b" ")
    with (
        pytest.raises(HandlerLoadError, match=r"handler\.chat_template: chat\.txt has more than 1 MiB"),
        LocalModel(VLLMHandler, folder, config=config(chat_template="chat.txt")),
    ):
        pass


def test_plain_predictions_and_unknown_paths(folder: Path) -> None:
    with LocalModel(VLLMHandler, folder, config=config()) as model:
        parts = {"prompt": Part(b"a", "text/plain"), "max_new_tokens": Part(b"2", "text/plain")}
        plain, lost = model.predict(
            [InferenceRequest("1", parts), InferenceRequest("2", parts, headers=Headers(url_path="v1/other"))]
        )
    assert plain.body
    assert lost.failure is not None
    assert (lost.failure.status, lost.failure.message) == (404, "Unknown API endpoint: v1/other")


def test_a_class_derived_from_it() -> None:
    class Mine(VLLMHandler):
        async def initialize(self, context: Any) -> None: ...

    with pytest.raises(HandlerLoadError, match=r"Other\.preprocess: is not called here, where the server itself reads"):
        type("Other", (VLLMHandler,), {"preprocess": None})
