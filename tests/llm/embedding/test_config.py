"""config.json of encoders."""

from __future__ import annotations

from typing import Any

import pytest

from msx_llm.embedding.config import encoder_config
from msx_sdk.errors import HandlerLoadError
from tests.llm.embedding.checkpoints import CONFIGS


def test_positions_of_roberta_begin_after_the_padding() -> None:
    assert encoder_config(CONFIGS["bert"]).context == 72
    roberta = encoder_config(CONFIGS["roberta"])
    assert (roberta.first_position, roberta.context) == (2, 70)


def test_distilbert_has_names_of_its_own() -> None:
    config = encoder_config(CONFIGS["distilbert"])
    assert (config.hidden_size, config.intermediate_size, config.hidden_act) == (32, 48, "relu")
    assert (config.num_hidden_layers, config.num_attention_heads) == (2, 4)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"hidden_size": None}, "missing required field `hidden_size`"),
        ({"hidden_act": "swiglu"}, r"config\.json, hidden_act: invalid enum value 'swiglu'"),
        ({"num_attention_heads": 5}, "hidden_size 32 cannot be divided by num_attention_heads 5"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type: invalid enum value 'relative_key'"),
        ({"is_decoder": True}, r"is_decoder"),
        ({"num_hidden_layers": 1 << 32}, r"num_hidden_layers: expected `int` <= 10000"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], text: str) -> None:
    with pytest.raises(HandlerLoadError, match=text):
        encoder_config(CONFIGS["bert"] | change)
