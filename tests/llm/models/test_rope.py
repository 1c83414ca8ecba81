"""The angles of positions. That all scalings are those of Hugging Face is in `test_decoder`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_llm.models.config import DecoderConfig
from msx_llm.models.rope import dynamic_rows, rope_tables
from msx_sdk.errors import HandlerLoadError
from tests.llm.models.test_config import read


def config(folder: Path, **rope: Any) -> DecoderConfig:
    return read(folder, rope_parameters={"rope_theta": 10000.0} | rope)


def angles(config: DecoderConfig, length: int) -> Any:
    cos, sin = rope_tables(config, length)
    assert cos.shape == sin.shape == (length, config.head_dim)
    assert cos.dtype == sin.dtype == np.float32
    np.testing.assert_array_equal(cos[:, : config.head_dim // 2], cos[:, config.head_dim // 2 :])
    return np.arctan2(sin, cos)[1, : config.head_dim // 2]  # of position 1: the frequencies


def test_pairs_turn_ever_slower(tmp_path: Path) -> None:
    np.testing.assert_allclose(angles(config(tmp_path), 4), [1, 0.1, 0.01, 0.001], rtol=1e-5)


def test_linear_turns_all_slower(tmp_path: Path) -> None:
    plain = angles(config(tmp_path), 4)
    np.testing.assert_allclose(angles(config(tmp_path, rope_type="linear", factor=4.0), 4), plain / 4, rtol=1e-5)


def test_dynamic_is_plain_up_to_the_length_the_model_was_trained_for(tmp_path: Path) -> None:
    dynamic = config(tmp_path, rope_type="dynamic", factor=2.0)
    np.testing.assert_array_equal(angles(dynamic, 4), angles(config(tmp_path), 4))
    plain = rope_tables(config(tmp_path), 512)
    found = dynamic_rows(dynamic, np.arange(512), np.arange(1, 513))
    np.testing.assert_allclose(found, plain, atol=1e-6)


def test_dynamic_has_a_larger_base_for_longer_texts(tmp_path: Path) -> None:
    dynamic = config(tmp_path, rope_type="dynamic", factor=2.0)
    base = 10000.0 * (2.0 * 1024 / 512 - 1) ** (8 / 6)
    wanted = [base ** -(pair / 8) for pair in (0, 2, 4, 6)]
    cos, sin = dynamic_rows(dynamic, np.array([1, 1]), np.array([1024, 512]))
    np.testing.assert_allclose(np.arctan2(sin, cos)[0, :4], wanted, rtol=1e-5)
    np.testing.assert_allclose(np.arctan2(sin, cos)[1, :4], angles(config(tmp_path), 4), rtol=1e-5)


def test_dynamic_does_not_look_at_the_original_length(tmp_path: Path) -> None:
    """As in transformers; the context of the file is then what it was stretched to."""
    dynamic = config(tmp_path, rope_type="dynamic", factor=2.0, original_max_position_embeddings=256)
    assert (dynamic.context, dynamic.native, dynamic.stretches) == (512, 512, False)
    assert angles(dynamic, 4).tolist() == angles(config(tmp_path), 4).tolist()


def test_dynamic_has_room_for_texts_that_turn_slower(tmp_path: Path) -> None:
    dynamic = config(tmp_path, rope_type="dynamic", factor=3.0)
    assert (dynamic.context, dynamic.native, dynamic.stretches) == (1536, 512, True)
    assert not config(tmp_path).stretches


def test_the_original_length_may_stand_outside(tmp_path: Path) -> None:
    yarn = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 10000.0}
    outside = read(tmp_path, rope_parameters=yarn, original_max_position_embeddings=64)
    inside = read(tmp_path, rope_parameters=yarn | {"original_max_position_embeddings": 64})
    assert outside.rope == inside.rope


def test_unknown_members_of_a_scaling_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config(tmp_path, rope_type="linear", factor=2.0, finetuned=True, zoom=1)
    assert "rope scaling 'linear': members that are not known are ignored: finetuned, zoom" in caplog.text


def test_yarn_scales_cosines(tmp_path: Path) -> None:
    yarn = config(tmp_path, rope_type="yarn", factor=4.0, original_max_position_embeddings=512)
    assert rope_tables(yarn, 1)[0][0, 0] == pytest.approx(0.1 * math.log(4) + 1)
    stated = config(tmp_path, rope_type="yarn", factor=4.0, attention_factor=1.5)
    assert rope_tables(stated, 1)[0][0, 0] == 1.5


@pytest.mark.parametrize(
    ("rope", "message"),
    [
        (
            {"rope_type": "spiral"},
            "'spiral' is unknown; known are default, linear, dynamic, llama3, longrope, proportional, yarn",
        ),
        ({"rope_type": "longrope", "short_factor": [1.0]}, "short_factor must be a list of 4 numbers above 0"),
        ({"rope_type": "linear"}, "rope scaling 'linear': factor is missing"),
        (
            {"rope_type": "linear", "factor": "2"},
            "config.json, rope_parameters.factor: expected `float | null`, got `str`",
        ),
        ({"rope_type": "llama3", "factor": 8.0}, "low_freq_factor is missing"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor: only 1 is supported"),
        ({"rope_type": "dynamic"}, "rope scaling 'dynamic': factor is missing"),
        (
            {"full_attention": {"rope_type": "linear"}},
            "config.json, rope_parameters.full_attention: {'rope_type': 'linear'} is not supported: all layers have",
        ),
    ],
)
def test_errors(tmp_path: Path, rope: dict[str, Any], message: str) -> None:
    with pytest.raises(HandlerLoadError) as caught:
        config(tmp_path, **rope)
    assert message in str(caught.value)
