"""Which network a folder is, before its weights are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_llm.embedding.family import find_family
from msx_sdk.errors import HandlerLoadError
from tests.llm.embedding.checkpoints import HIDDEN, VOCABULARY, write_checkpoint


@pytest.mark.parametrize(("kind", "context"), [("bert", 72), ("roberta", 70), ("distilbert", 72), ("qwen3", 72)])
def test_families(kind: str, context: int, tmp_path: Path) -> None:
    family = find_family(write_checkpoint(tmp_path, kind), "CPU")
    assert (family.model_type, family.hidden, family.context) == (kind, HIDDEN, context)
    assert (family.vocab_size, family.dtype) == (len(VOCABULARY), "float32")


@pytest.mark.parametrize(("key", "dtype"), [("torch_dtype", "bfloat16"), ("dtype", "float16")])
def test_half_precision_is_for_devices(key: str, dtype: str, tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, "bert", None, **{key: dtype})
    assert find_family(folder, "Ascend").dtype == dtype
    assert find_family(folder, "CPU").dtype == "float32"


def test_a_decoder_whose_angles_stretch_embeds_what_it_was_trained_for(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, "qwen3", rope_scaling={"type": "dynamic", "factor": 2.0})
    assert find_family(folder, "CPU").context == 72


def test_members_of_an_encoder_that_would_change_the_numbers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(HandlerLoadError, match=r"feed_forward_type: .*glu.* is not supported for the model_type bert"):
        find_family(write_checkpoint(tmp_path, feed_forward_type="geglu"), "CPU")
    with pytest.raises(HandlerLoadError, match="quantization_config: "):
        find_family(write_checkpoint(tmp_path, quantization_config={"quant_method": "bitsandbytes"}), "CPU")
    find_family(write_checkpoint(tmp_path, layer_norm_type="x"), "CPU")
    assert "members that are not known here, and that are ignored: layer_norm_type" in caplog.text


def test_a_family_that_is_not_known(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, model_type="t5")
    with pytest.raises(
        HandlerLoadError, match=r"config\.json, model_type: 't5' is not a family .*; known are bert, .*qwen3"
    ):
        find_family(folder, "CPU")


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(HandlerLoadError, match=r"config\.json is missing"):
        find_family(tmp_path, "CPU")
