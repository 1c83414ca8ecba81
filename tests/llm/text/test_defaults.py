from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from msx_llm.text.defaults import sampling_defaults
from msx_sdk.errors import HandlerLoadError
from msx_sdk.generation import SamplingDefaults


def defaults(folder: Path, **config: Any) -> SamplingDefaults:
    (folder / "generation_config.json").write_text(json.dumps(config))
    return sampling_defaults(folder)


def test_what_the_makers_want(tmp_path: Path) -> None:
    given: dict[str, Any] = {"temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0, "repetition_penalty": 1.05}
    assert defaults(tmp_path, do_sample=True, eos_token_id=2, **given) == SamplingDefaults(**given)
    assert defaults(tmp_path, temperature=0.6, typical_p=None) == SamplingDefaults(temperature=0.6)


def test_do_sample(tmp_path: Path) -> None:
    assert defaults(tmp_path, do_sample=True) == SamplingDefaults(temperature=1.0)
    assert defaults(tmp_path, do_sample=False, temperature=0.6, top_p=0.5) == SamplingDefaults(temperature=0.0)
    assert defaults(tmp_path) == SamplingDefaults()


def test_without_the_file(tmp_path: Path) -> None:
    assert sampling_defaults(tmp_path) == SamplingDefaults()


def test_a_value_that_cannot_be_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert defaults(tmp_path, top_k=5, top_p=1.5, temperature="hot") == SamplingDefaults(top_k=5)
    assert "generation_config.json: top_p is left out: expected `float` <= 1.0" in caplog.text
    assert "temperature is left out" in caplog.text


def test_a_file_that_is_not_an_object(tmp_path: Path) -> None:
    (tmp_path / "generation_config.json").write_text("[]")
    with pytest.raises(HandlerLoadError, match=r"generation_config\.json is not a JSON object"):
        sampling_defaults(tmp_path)
