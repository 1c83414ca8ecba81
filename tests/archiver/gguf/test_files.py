"""The files of Hugging Face's layout that are made of a GGUF file's metadata."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from msx_archiver.errors import PackError
from msx_archiver.gguf.files import made_files
from tests.gguf_files import Stored
from tests.gguf_models import F32, SPECIAL, TEMPLATE, byte_level, small, zeros

ROOT = "tokenizer.ggml."


def made(
    folder: Path, more: dict[str, Any] | None = None, kind: str = "llama", tensors: dict[str, Stored] | None = None
) -> dict[str, Any]:
    files, _ = made_files(small(folder / "m.gguf", more, kind, tensors))
    return {name: json.loads(data) for name, data in files.items()}


def test_a_model_is_a_folder_of_the_hub(tmp_path: Path) -> None:
    files = made(tmp_path)
    config = files["config.json"]
    assert config["model_type"] == "llama"
    assert config["vocab_size"] == len(byte_level()[f"{ROOT}tokens"])
    assert (config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"]) == (2, 1, 16)
    assert config["tie_word_embeddings"] is True
    assert config["quantization_config"] == {"quant_method": "gguf", "type": "F16", "types": {}, "rotary_pairs": True}
    assert files["generation_config.json"] == {"eos_token_id": [0, 2]}
    wanted = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "pad_token": "<|im_end|>"}
    own = {"add_bos_token": False, "add_eos_token": False, "chat_template": TEMPLATE}
    assert files["tokenizer_config.json"] == wanted | own


def test_types_of_layers(tmp_path: Path) -> None:
    down = Stored((32, 64), 8, bytes(32 * 2 * 34))
    config = made(tmp_path, tensors={"blk.0.ffn_down.weight": down})["config.json"]
    assert config["quantization_config"]["types"] == {"model.layers.0.mlp.down_proj": "Q8_0"}


def test_qwen_has_halves_that_turn_together_and_biases(tmp_path: Path) -> None:
    config = made(tmp_path, kind="qwen2")["config.json"]
    assert config["quantization_config"]["rotary_pairs"] is False
    assert "attention_bias" not in config
    assert made(tmp_path, tensors={"blk.0.attn_q.bias": zeros((32,))})["config.json"]["attention_bias"] is True


def test_a_head_of_its_own(tmp_path: Path) -> None:
    assert made(tmp_path, tensors={"output.weight": zeros((270, 32))})["config.json"]["tie_word_embeddings"] is False


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({"type": "none"}, None),
        ({"type": "linear", "factor": 4.0}, {"rope_type": "linear", "factor": 4.0}),
        (
            {"type": "yarn", "factor": 2.0, "original_context_length": 64},
            {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 64},
        ),
        (
            {"type": "yarn", "factor": 2.0, "original_context_length": 64, "yarn_beta_fast": 16.0},
            {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 64, "beta_fast": 16.0},
        ),
    ],
)
def test_scaled_angles(tmp_path: Path, more: dict[str, Any], wanted: dict[str, Any] | None) -> None:
    given = {f"llama.rope.scaling.{key}": value for key, value in more.items()}
    assert made(tmp_path, given)["config.json"].get("rope_scaling") == wanted


def test_divisors_of_angles(tmp_path: Path) -> None:
    numbers = [1.0, 1.0, 1.5, 2.0, 4.0, 8.0, 8.0, 8.0]
    one = Stored((8,), F32, struct.pack("<8f", *numbers))
    scaling = made(tmp_path, tensors={"rope_freqs.weight": one})["config.json"]["rope_scaling"]
    assert scaling["short_factor"] == scaling["long_factor"] == numbers
    assert scaling["original_max_position_embeddings"] == 128


def test_who_samples_how(tmp_path: Path) -> None:
    found = made(tmp_path, {"general.sampling.temp": 0.5, "general.sampling.top_k": 20})["generation_config.json"]
    assert (found["temperature"], found["top_k"]) == (0.5, 20)


def test_what_switches_a_sampling_off_is_a_number_too(tmp_path: Path) -> None:
    """The converter writes what generation_config.json has."""
    off = {"temp": 0.0, "top_k": 0, "min_p": 0.0}
    found = made(tmp_path, {f"general.sampling.{name}": value for name, value in off.items()})["generation_config.json"]
    assert (found["temperature"], found["top_k"], found["min_p"]) == (0, 0, 0)


def test_several_templates(tmp_path: Path) -> None:
    more = {"tokenizer.chat_templates": ["tool_use"], "tokenizer.chat_template.tool_use": "{{ tools }}"}
    named = made(tmp_path, more)["tokenizer_config.json"]["chat_template"]
    assert named == [{"name": "default", "template": TEMPLATE}, {"name": "tool_use", "template": "{{ tools }}"}]


@pytest.mark.parametrize(("pre", "first"), [("llama-bpe", True), ("smollm", False)])
def test_whether_texts_begin_with_a_token(tmp_path: Path, pre: str, first: bool) -> None:
    assert made(tmp_path, {f"{ROOT}pre": pre})["tokenizer_config.json"]["add_bos_token"] is first
    assert made(tmp_path, {f"{ROOT}pre": pre, f"{ROOT}add_bos_token": not first})["tokenizer_config.json"][
        "add_bos_token"
    ] is (not first)


def test_keys_that_nobody_knows_are_told(tmp_path: Path) -> None:
    _, warnings = made_files(small(tmp_path / "m.gguf", {"llama.attention.new_trick": 1}))
    [sentence] = warnings
    assert sentence.endswith("llama.attention.new_trick is not known, and has no effect.")


def test_a_tokenizer_that_is_there_is_left(tmp_path: Path) -> None:
    path = small(tmp_path / "m.gguf", {f"{ROOT}pre": "brand-new"})
    files, _ = made_files(path, ["tokenizer.json"])
    assert sorted(files) == ["config.json", "generation_config.json", "tokenizer_config.json"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"general.architecture": "mamba"}, "the architecture mamba is not read from GGUF; llama, qwen2, qwen3 are"),
        ({"general.architecture": None}, "it has no general.architecture"),
        ({"llama.block_count": None}, "it has no llama.block_count"),
        ({"llama.block_count": "two"}, "llama.block_count: two is not a whole number above 0"),
        ({"llama.block_count": 0}, "llama.block_count: 0 is not"),
        ({"llama.block_count": 4_294_967_295}, "llama.block_count: 4,294,967,295 is more than its tensors' 1 layers"),
        ({"llama.attention.head_count": [2, 4]}, r"llama.attention.head_count: \[2, 4\] is not a whole number"),
        ({"llama.rope.freq_base": float("nan")}, "llama.rope.freq_base: nan is not a number above 0"),
        ({"general.sampling.temp": float("nan")}, "general.sampling.temp: nan is not a number"),
        ({"llama.attention.clamp_kqv": 8.0}, "llama.attention.clamp_kqv: 8.0 changes what a model computes"),
        ({"llama.rope.scaling.yarn_log_multiplier": 0.1}, "yarn_log_multiplier: 0.10.* changes what a model computes"),
        ({"llama.expert_count": 8}, "llama.expert_count: 8 changes what a model computes"),
        ({"llama.attention.sliding_window": 4096}, "llama.attention.sliding_window: 4096 changes"),
        ({"llama.rope.dimension_count": 8}, "llama.rope.dimension_count: 8 is not the size of a head, 16"),
        ({"llama.rope.scaling.type": "su"}, "rope.scaling.type: su is not read; linear and yarn are"),
        ({f"{ROOT}model": "t5"}, "tokenizer.ggml.model: t5 is not read; gpt2 and llama are: put the tokenizer.json"),
        ({f"{ROOT}pre": "brand-new"}, "tokenizer.ggml.pre: brand-new is not known; gpt-2, smollm"),
        ({f"{ROOT}pre": None}, "it has no tokenizer.ggml.pre"),
        ({f"{ROOT}eos_token_id": 99_999}, "eos_token_id: 99999 is not one of the"),
        ({f"{ROOT}merges": ["nospace"]}, "merges: 'nospace' is not two tokens that make a third"),
        ({f"{ROOT}merges": ["y x"]}, "merges: 'y x' is not two tokens"),
        ({f"{ROOT}token_type": [1, 1]}, "tokenizer.ggml.token_type has 2 entries for 2"),
        ({f"{ROOT}tokens": [*SPECIAL, "a", "a"]}, "tokens 3 and 4 are both 'a'"),
        ({"tokenizer.chat_template": 7}, "tokenizer.chat_template: 7 is not a text"),
    ],
)
def test_what_cannot_be_served_is_refused(tmp_path: Path, more: dict[str, Any], says: str) -> None:
    with pytest.raises(PackError, match=says):
        made(tmp_path, more)


@pytest.mark.parametrize(
    ("tensors", "says"),
    [
        ({"token_embd.weight": zeros((3, 32))}, "it has .* tokens, and token_embd.weight 3 rows"),
        ({"token_embd.weight": zeros((96,))}, "no tensor token_embd.weight with two axes"),
        ({"rope_freqs.weight": zeros((8,))}, "tensor rope_freqs.weight is not 8 numbers of F32"),
        ({"rope_freqs.weight": Stored((8,), F32, bytes(32))}, "rope_freqs.weight has numbers that are not above 0"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(tmp_path: Path, tensors: dict[str, Stored], says: str) -> None:
    with pytest.raises(PackError, match=says):
        made(tmp_path, tensors=tensors)


def test_a_configuration_beside_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackError, match=r"has its configuration in it: leave config\.json out"):
        made_files(small(tmp_path / "m.gguf"), ["config.json"])
