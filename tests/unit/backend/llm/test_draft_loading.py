"""What a small model that writes drafts has to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msx_backend.llm.draft_loading import draft_config, load_draft_model
from msx_sdk._internal.config import SpeculativeOptions
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore import Parallel
from tests.unit.backend.llm.models.test_config import read
from tests.unit.backend.llm.runners import limits

DRAFT = SpeculativeOptions(method="draft", model="small")


def archive(folder: Path, **members: Any) -> Any:
    """-> The large model's configuration; the small one's has `members`."""
    (folder / "small").mkdir()
    read(folder / "small", **members)
    return read(folder)


def test_a_small_model_of_the_same_tokens(tmp_path: Path) -> None:
    large = archive(tmp_path, hidden_size=32)
    found = draft_config(tmp_path, DRAFT, large, Parallel())
    assert found is not None
    assert found.hidden_size == 32
    assert draft_config(tmp_path, SpeculativeOptions(), large, Parallel()) is None
    assert draft_config(tmp_path, None, large, Parallel()) is None


@pytest.mark.parametrize(
    ("members", "options", "parallel", "said"),
    [
        ({"vocab_size": 77}, {}, {}, "speculative.model: small has 77 tokens and the model"),
        ({}, {"model": "tiny"}, {}, "speculative.model: 'tiny' is not a folder of the archive with a config.json"),
        ({}, {"model": "../small"}, {}, "speculative.model: '../small' is not a folder of the archive"),
        ({}, {}, {"target": "Ascend"}, "speculative.method: draft is for one rank on a CPU"),
        ({}, {}, {"tp_size": 2}, "speculative.method: draft is for one rank on a CPU"),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, members: dict[str, Any], options: dict[str, Any], parallel: dict[str, Any], said: str
) -> None:
    large = archive(tmp_path, **members)
    with pytest.raises(HandlerLoadError) as raised:
        draft_config(
            tmp_path,
            SpeculativeOptions(**{"method": "draft", "model": "small", **options}),
            large,
            Parallel(**parallel),
        )
    assert str(raised.value).startswith(said)


def test_texts_must_not_outgrow_it(tmp_path: Path) -> None:
    archive(tmp_path)
    small = read(tmp_path / "small", max_position_embeddings=32)
    with pytest.raises(HandlerLoadError, match="maxTotalTokens: 64 is more than the 32 tokens"):
        load_draft_model(tmp_path, DRAFT, small, limits(), Parallel(), print)
