"""The files of sentence-transformers beside a network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from msx_core.input_prompts import NO_PROMPTS, InputPrompts
from msx_llm.embedding.sentence import EmbeddingOptions, Sentence, read_sentence
from msx_sdk.errors import HandlerLoadError
from tests.llm.embedding.checkpoints import HIDDEN, write_modules

NOTHING = EmbeddingOptions()


def modules(folder: Path, *kinds: tuple[str, str]) -> None:
    listed = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for kind, path in kinds]
    (folder / "modules.json").write_text(json.dumps(listed))


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    return tmp_path


def test_without_modules_an_encoder_has_the_mean_and_a_decoder_the_last_state(bert: Path) -> None:
    assert read_sentence(bert, NOTHING) == Sentence(bert, read_sentence(bert, NOTHING).pooling)
    assert read_sentence(bert, NOTHING).pooling.modes == ("mean",)
    (bert / "config.json").write_text('{"model_type": "qwen3"}')
    found = read_sentence(bert, NOTHING)
    assert (found.pooling.modes, found.normalize, found.longest) == (("last",), True, None)


def test_the_modules_decide(bert: Path) -> None:
    write_modules(bert, normalize=False, max_length=40, pooling_mode_cls_token=True)
    found = read_sentence(bert, NOTHING)
    assert (found.pooling.modes, found.normalize, found.longest) == (("cls",), False, 40)
    assert found.size(HIDDEN) == HIDDEN


def test_the_yaml_overrides_the_modules(bert: Path) -> None:
    write_modules(bert, normalize=False, pooling_mode_cls_token=True)
    found = read_sentence(bert, EmbeddingOptions(pooling="max", normalize=True))
    assert (found.pooling.modes, found.normalize) == (("max",), True)


def test_the_network_may_have_a_folder_of_its_own(bert: Path) -> None:
    (bert / "0_Transformer").mkdir()
    modules(bert, ("Transformer", "0_Transformer"), ("Normalize", "1_Normalize"))
    assert read_sentence(bert, NOTHING).folder == bert / "0_Transformer"


@pytest.mark.parametrize(("activation", "value"), [("Tanh", np.tanh(0.5)), ("Identity", 0.5)])
def test_a_dense_layer_behind_the_pooling(bert: Path, activation: str, value: float) -> None:
    dense = bert / "2_Dense"
    dense.mkdir()
    (dense / "config.json").write_text(json.dumps({"activation_function": f"torch.nn.modules.{activation}"}))
    weight = np.array([[1, 0], [0, 1], [1, 1]], np.float32)
    save_file({"linear.weight": weight, "linear.bias": np.array([0, 0, -1], np.float32)}, dense / "model.safetensors")
    modules(bert, ("Transformer", ""), ("Dense", "2_Dense"))
    found = read_sentence(bert, NOTHING)
    assert found.size(HIDDEN) == 3
    vectors = found.vectors(np.array([[[0.5, 1.0]]], np.float32), np.zeros((1, 2), np.float32))
    assert vectors[0, 0] == vectors[0, 2] == pytest.approx(value)


def prompts(folder: Path, *, include: bool = True, **members: Any) -> InputPrompts:
    modules(folder, ("Transformer", ""), ("Pooling", "1_Pooling"))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    pooling = {"pooling_mode_mean_tokens": True, "include_prompt": include}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "config_sentence_transformers.json").write_text(json.dumps(members))
    return read_sentence(folder, NOTHING).prompts


def test_prompts(bert: Path) -> None:
    assert read_sentence(bert, NOTHING).prompts == NO_PROMPTS
    texts = {"query": "query: ", "document": ""}
    assert prompts(bert, prompts=texts, default_prompt_name="query") == (texts, "query")
    assert prompts(bert, prompts=texts, default_prompt_name=None) == (texts, None)
    assert prompts(bert, include=False, prompts=texts) == NO_PROMPTS


@pytest.mark.parametrize(
    ("include", "members", "reason"),
    [
        (True, {"prompts": ["x"]}, "prompts: expected an object of texts"),
        (True, {"prompts": {"a": "x"}, "default_prompt_name": "b"}, "default_prompt_name: b: prompts has none"),
        (
            False,
            {"prompts": {"a": "x"}, "default_prompt_name": "a"},
            "default_prompt_name: a: the pooling leaves it out",
        ),
    ],
)
def test_prompts_that_are_not_served(bert: Path, include: bool, members: dict[str, Any], reason: str) -> None:
    with pytest.raises(HandlerLoadError, match=reason):
        prompts(bert, include=include, **members)


def test_vectors_are_normalized_where_the_model_says_so(bert: Path) -> None:
    sums, unused = np.array([[[3.0, 4]]], np.float32), np.zeros((1, 2), np.float32)
    model = read_sentence(bert, NOTHING)
    (vector,) = model.vectors(sums, unused)
    assert model.finish(vector).tolist() == [pytest.approx(0.6), pytest.approx(0.8)]
    assert model.finish(vector, normalize=False).tolist() == [3, 4]
    plain = read_sentence(bert, EmbeddingOptions(normalize=False))
    assert plain.finish(vector).tolist() == [3, 4]
    assert plain.finish(vector, normalize=True).tolist() == [pytest.approx(0.6), pytest.approx(0.8)]
    assert plain.finish(vector, dimensions=1).tolist() == [1]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "x.WordWeights", "path": "1"}], "modules.json has a module WordWeights; known are Transformer, "),
        ([{"type": "x.Pooling"}], "modules.json is not a list of modules"),
        ({"a": 1}, "modules.json is not a list of modules"),
    ],
)
def test_modules_that_are_not_known(bert: Path, content: Any, text: str) -> None:
    (bert / "modules.json").write_text(json.dumps(content))
    with pytest.raises(HandlerLoadError, match=text):
        read_sentence(bert, NOTHING)


def test_an_activation_that_is_not_known(bert: Path) -> None:
    (bert / "2_Dense").mkdir()
    (bert / "2_Dense" / "config.json").write_text('{"activation_function": "torch.nn.Softsign"}')
    modules(bert, ("Dense", "2_Dense"))
    with pytest.raises(HandlerLoadError, match=r"2_Dense/config.json: activation_function Softsign is not one of Tanh"):
        read_sentence(bert, NOTHING)
