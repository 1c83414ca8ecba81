"""Values that no file should have: each is read, or refused by its key, and none costs memory or time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_llm.models.registry import read_config
from msx_llm.models.rope import dynamic_rows, tables_of_all
from msx_sdk.errors import HandlerLoadError
from tests.llm.models.test_config import read
from tests.llm.runners import GOLDENS

ODD: list[Any] = [None, True, -1, 0, 1, 1e-300, 1e308, 10**18, 10**30, "x", ["x"], {"a": 1}]
DISTINCT = ("deepseek_v3", "gemma4_experts", "glm4", "granite", "hunyuan", "phi3")
LINEAR = {"targets": ["Linear"], "weights": 4}
PACKED = {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"a": LINEAR}}
Place = tuple[str, ...]
SCALED = {"original_max_position_embeddings": 32, "factor": 2.0, "low_freq_factor": 1, "high_freq_factor": 4}
KINDS = ("default", "linear", "dynamic", "llama3", "proportional", "yarn")
MEMBERS = ("alpha", "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate", *SCALED)


def places(given: dict[str, Any], at: Place = ()) -> Iterator[Place]:
    for key, value in given.items():
        yield (*at, key)
        if isinstance(value, dict):
            yield from places(value, (*at, key))


def with_odd(given: dict[str, Any], place: Place, value: Any) -> dict[str, Any]:
    first, *rest = place
    return {**given, first: with_odd(given[first], tuple(rest), value) if rest else value}


def read_or_refused(folder: Path, given: dict[str, Any]) -> None:
    (folder / "config.json").write_text(json.dumps(given))
    reason = "config.json"
    try:
        config = read_config(folder)
        tables_of_all(config, 4)
        if config.stretches:
            dynamic_rows(config, np.arange(4), np.full(4, 1 << 20))
    except HandlerLoadError as error:
        reason = str(error)
    assert reason.startswith("config.json"), given


@pytest.mark.parametrize("golden", DISTINCT)
def test_every_key_of_a_family(golden: str, tmp_path: Path) -> None:
    given = json.loads((GOLDENS / golden / "config.json").read_text())
    for place in places(given):
        for value in ODD:
            read_or_refused(tmp_path, with_odd(given, place, value))


@pytest.mark.parametrize("kind", KINDS)
def test_every_member_of_a_scaling(kind: str, tmp_path: Path) -> None:
    given = json.loads((GOLDENS / "llama" / "config.json").read_text())
    for member in MEMBERS:
        for value in ODD:
            rope = {"rope_type": kind, "rope_theta": 10000.0, **SCALED, member: value}
            read_or_refused(tmp_path, given | {"rope_parameters": None, "rope_scaling": rope})


@pytest.mark.parametrize("member", ["short_factor", "long_factor"])
def test_every_divisor_of_longrope(member: str, tmp_path: Path) -> None:
    given = json.loads((GOLDENS / "llama" / "config.json").read_text())
    divisors = {"short_factor": [1.0] * 4, "long_factor": [2.0] * 4}
    for value in (*ODD, [1.0]):
        for odd in (value, [value] * 4):
            rope = {"rope_type": "longrope", "original_max_position_embeddings": 32, **divisors, member: odd}
            read_or_refused(tmp_path, given | {"rope_parameters": None, "rope_scaling": rope})


@pytest.mark.parametrize(
    ("kind", "keys", "says"),
    [
        ("llama", {"head_dim": 1 << 25}, "config.json, head_dim: expected `int` <= 16777216"),
        ("llama", {"rope_theta": 1}, "config.json, rope_theta: expected `float` > 1.0"),
        ("llama", {"rope_scaling": {"factor": 1e9}}, "config.json, rope_scaling.factor: expected `float` <= 1000000.0"),
        (
            "llama",
            {"rope_scaling": {"rope_type": "longrope", "long_factor": [1e-300]}},
            "config.json, rope_scaling.long_factor[0]: expected `float` >= 1e-06",
        ),
        ("llama", {"hidden_act": "x" * 1000}, f"hidden_act: {'x' * 77}... is not supported"),
        ("mistral", {"layer_types": ["full_attention"] * 1000}, "... has 1000 entries for 3 layers"),
        ("llama", {"rope_scaling": {"rope_type": "x" * 1000}}, f"rope_type: '{'x' * 40}' is unknown"),
        ("deepseek_v3", {"num_experts_per_tok": 0}, "config.json, num_experts_per_tok: 0 is below 1"),
        ("granite", {"residual_multiplier": 1e-300}, "config.json, residual_multiplier: expected `float` >= 1e-06"),
        ("gemma3_text", {"rope_parameters": {"full_attention": 2}}, "config.json, rope_parameters.full_attention: exp"),
        ("qwen3_moe", {"num_experts": 1_000_000}, "3 layers of 1,000,000 experts are more than the 262,144 that are"),
        ("llama", {"quantization_config": {"quant_method": ["awq"]}}, "quant_method: ['awq'] is not a name"),
        ("llama", {"quantization_config": PACKED}, "config_groups.*.weights: 4 is not an object"),
        (
            "llama",
            {"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4, "high_freq_factor": 4}},
            "rope scaling 'llama3': high_freq_factor 4.0 is not above low_freq_factor 4.0",
        ),
    ],
)
def test_the_key_and_its_limit_are_named(kind: str, keys: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(HandlerLoadError) as caught:
        read(tmp_path, kind, **keys)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 200
