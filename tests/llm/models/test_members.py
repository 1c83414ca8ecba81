"""Members of `config.json` that are not read: they have no effect, or are refused, or named in a warning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msx_llm.embedding.config import MEMBERS as ENCODERS
from msx_llm.models.members import IGNORED
from msx_llm.models.registry import FAMILIES
from msx_sdk.errors import HandlerLoadError
from tests.llm.models.test_config import read

CHANGES: list[tuple[str, Any]] = [
    ("attn_logit_softcapping", 50.0),
    ("final_logit_softcapping", 30.0),
    ("query_pre_attn_scalar", 300),
    ("attention_multiplier", 0.1),
    ("embedding_multiplier", 12.0),
    ("residual_multiplier", 0.22),
    ("logits_scaling", 8.0),
    ("partial_rotary_factor", 0.5),
    ("rotary_pct", 0.25),
    ("rope_interleave", True),
    ("clip_qkv", 8.0),
    ("no_rope_layers", [1, 1, 0]),
    ("num_local_experts", 8),
    ("use_bidirectional_attention", True),
    ("per_layer_config", {"0": {"num_attention_heads": 4}}),
]


@pytest.mark.parametrize(
    ("model_type", "name", "value"),
    [(kind, *change) for kind in FAMILIES for change in CHANGES if change[0] not in FAMILIES[kind].members.read],
)
def test_what_would_change_the_numbers_is_refused(tmp_path: Path, model_type: str, name: str, value: Any) -> None:
    with pytest.raises(HandlerLoadError) as caught:
        read(tmp_path, model_type, **{name: value})
    start = f"config.json, {name}: "
    assert str(caught.value).startswith(start)
    assert f" is not supported for the model_type {model_type}; leave it out" in str(caught.value)


def test_experts_are_not_passed_over(tmp_path: Path) -> None:
    with pytest.raises(HandlerLoadError, match="num_local_experts: 8 changes what a model computes"):
        read(tmp_path, num_local_experts=8)
    assert read(tmp_path, num_local_experts=0).experts is None


def test_a_window_of_a_llama_is_refused(tmp_path: Path) -> None:
    read(tmp_path, "llama", sliding_window=None)
    with pytest.raises(HandlerLoadError, match="sliding_window: 8 changes what a model computes"):
        read(tmp_path, "llama", sliding_window=8)


def test_neutral_values_are_as_good_as_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    neutral: dict[str, Any] = {
        "attn_logit_softcapping": None,
        "final_logit_softcapping": 0.0,
        "query_pre_attn_scalar": 8,
        "attention_multiplier": 8**-0.5,
        "embedding_multiplier": 1,
        "partial_rotary_factor": 1.0,
        "use_mrope": False,
        "layer_types": ["full_attention"] * 3,
        "pruned_heads": {},
        "is_causal": True,
    }
    assert read(tmp_path, "llama", **neutral).rope == read(tmp_path, "llama").rope
    assert caplog.text == ""


def test_the_refusal_names_the_neutral_value(tmp_path: Path) -> None:
    with pytest.raises(HandlerLoadError, match=r"leave it out, or give 8$"):
        read(tmp_path, query_pre_attn_scalar=4)
    with pytest.raises(HandlerLoadError, match=r"leave it out$"):
        read(tmp_path, clip_qkv=4)


def test_an_unknown_key_is_named_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    read(tmp_path, "qwen2", zeta=1, alpha=[2], _name_or_path="somewhere", transformers_version="5")
    [record] = caplog.records
    assert (record.levelname, record.name) == ("WARNING", "msx.llm")
    assert record.getMessage().endswith(
        "config.json of the model_type qwen2 has members that are not known here, and that are ignored: alpha, zeta"
    )


def test_a_decoder_that_sees_both_ways_is_known_as_one(tmp_path: Path) -> None:
    assert read(tmp_path).causal
    assert read(tmp_path, is_causal=None).causal
    assert not read(tmp_path, is_causal=False).causal


@pytest.mark.parametrize("model_type", FAMILIES)
def test_lists_do_not_overlap(model_type: str) -> None:
    members = FAMILIES[model_type].members
    assert not members.read & members.ignored
    assert not members.ignored & (members.neutral.keys() - members.read)


def test_lists_of_encoders_do_not_overlap() -> None:
    assert not (ENCODERS.read | IGNORED) & ENCODERS.neutral.keys()
