"""The head of a decoder that answers by words."""

from __future__ import annotations

import numpy as np
import pytest

from msx_llm.classification.decoder_head import read_answers
from msx_llm.models.registry import read_config
from msx_llm.models.weights import Checkpoint
from tests.llm.runners import GOLDENS

pytestmark = pytest.mark.mindspore
pytest.importorskip("mindspore")


def test_the_logits_of_answers_have_the_factor_of_all_logits() -> None:
    folder = GOLDENS / "granite"
    config = read_config(folder)
    with Checkpoint(folder, config) as checkpoint:
        rows = checkpoint.read("model.embed_tokens.weight").astype(np.float32)
    np.testing.assert_array_equal(read_answers(folder, config, [3, 5]).weight[:, 0], (rows[3] - rows[5]) / 4)
