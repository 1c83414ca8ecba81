"""Functions of logits, by the names in a model's files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_llm.classification.scales import read_scales

LOGITS = np.array([-800.0, 0.0, 800.0])
EXPECTED: dict[str, list[float]] = {
    "Sigmoid": [0, 0.5, 1],
    "Identity": [-800, 0, 800],
    "Softmax": [0, 0, 1],
    "Tanh": [-1, 0, 1],
}


@pytest.mark.parametrize(
    ("members", "labels", "name"),
    [
        ({}, 1, "Sigmoid"),
        ({}, 3, "Identity"),
        ({"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}, 1, "Identity"),
        ({"sbert_ce_default_activation_function": "torch.nn.modules.activation.Tanh"}, 1, "Tanh"),
        ({"sentence_transformers": {"version": "5"}}, 1, "Sigmoid"),
    ],
)
def test_the_models_own(members: dict[str, Any], labels: int, name: str, tmp_path: Path) -> None:
    scales = read_scales(tmp_path, members, labels)
    np.testing.assert_allclose(scales.apply("model", LOGITS), EXPECTED[name])
    as_vllm = "Softmax" if (labels, name) == (3, "Identity") else name
    np.testing.assert_allclose(scales.apply("files", LOGITS), EXPECTED[as_vllm])


def test_sentence_transformers_own_file_counts_first(tmp_path: Path) -> None:
    file = {"activation_fn": "torch.nn.modules.activation.Softmax"}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(file))
    own = {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}
    np.testing.assert_allclose(read_scales(tmp_path, own, 3).apply("model", LOGITS), EXPECTED["Softmax"])


@pytest.mark.parametrize(("kind", "name"), [(None, "Softmax"), ("multi_label_classification", "Sigmoid")])
def test_probabilities(kind: str | None, name: str, tmp_path: Path) -> None:
    scales = read_scales(tmp_path, {"problem_type": kind}, 3)
    np.testing.assert_allclose(scales.apply("probability", LOGITS), EXPECTED[name])
    np.testing.assert_allclose(scales.apply("logit", LOGITS), LOGITS)
