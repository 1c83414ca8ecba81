"""Requirements of a small model that writes drafts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msx_core.config import SpeculativeOptions
from msx_llm.draft_loading import draft_config, draft_weights, load_draft_model
from msx_llm.sizing.quantised import weight_bytes
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore import Parallel
from tests.llm.models.test_config import read
from tests.llm.runners import limits

DRAFT = SpeculativeOptions(method="draft", model="small")


def archive(folder: Path, **members: Any) -> Any:
    """-> The large model's configuration; the small one's has `members`."""
    (folder / "small").mkdir()
    read(folder / "small", **members)
    return read(folder)


def test_a_small_model_of_the_same_tokens(tmp_path: Path) -> None:
    large = archive(tmp_path, hidden_size=32)
    found = draft_config(tmp_path, DRAFT, large)
    assert found is not None
    assert found.hidden_size == 32
    assert draft_config(tmp_path, SpeculativeOptions(), large) is None
    assert draft_config(tmp_path, None, large) is None


@pytest.mark.parametrize(
    ("members", "options", "said"),
    [
        ({"vocab_size": 77}, {}, "speculative.model: small has 77 tokens and the model"),
        ({}, {"model": "tiny"}, "speculative.model: 'tiny' is not a folder of the archive with a config.json"),
        ({}, {"model": "../small"}, "speculative.model: '../small' is not a folder of the archive"),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, members: dict[str, Any], options: dict[str, Any], said: str
) -> None:
    large = archive(tmp_path, **members)
    with pytest.raises(HandlerLoadError) as raised:
        draft_config(tmp_path, SpeculativeOptions(**{"method": "draft", "model": "small", **options}), large)
    assert str(raised.value).startswith(said)


def test_states_do_not_forget_a_draft(tmp_path: Path) -> None:
    """A small model writes more than are taken; the large one has a state behind each token of a step."""
    small = "speculative.model: small is a qwen3_5_text, whose states do not forget draft tokens that were wrong: take"
    with pytest.raises(HandlerLoadError, match=small):
        draft_config(tmp_path, DRAFT, archive(tmp_path, model_type="qwen3_5_text"))
    assert draft_config(tmp_path, SpeculativeOptions(), read(tmp_path, "qwen3_next")) is None


@pytest.mark.parametrize("target", ["CPU", "Ascend"])
def test_the_first_rank_has_all_of_it(tmp_path: Path, target: str) -> None:
    small = read(tmp_path)
    first, second = (draft_weights(small, Parallel(rank, 1, 2, target)) for rank in range(2))
    assert first == weight_bytes(small, Parallel(target=target)) > 0
    assert second == draft_weights(None, Parallel(0, 1, 2, target)) == 0


def test_texts_must_not_outgrow_it(tmp_path: Path) -> None:
    archive(tmp_path)
    small = read(tmp_path / "small", max_position_embeddings=32)
    with pytest.raises(HandlerLoadError, match="maxTotalTokens: 64 is more than the 32 tokens"):
        load_draft_model(tmp_path, DRAFT, small, limits(), Parallel(), print)
