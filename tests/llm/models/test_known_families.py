"""The server knows the families of the engine without importing it."""

from __future__ import annotations

from pathlib import Path

from msx_core.model_families import DECODERS, ENCODERS, OF_PICTURES
from msx_llm.embedding import config as encoders
from msx_llm.models.registry import FAMILIES
from msx_llm.models.text_part import TEXT_PARTS


def test_the_lists_are_those_of_the_engine() -> None:
    assert set(DECODERS) == FAMILIES.keys() | TEXT_PARTS.keys()
    assert set(OF_PICTURES) == TEXT_PARTS.keys()
    assert set(ENCODERS) == set(encoders.ENCODERS)


def test_a_variant_of_a_family_is_small() -> None:
    """One that takes more than 40 lines needs a field that other families can have, too."""
    own = {"deepseek", "gemma3", "gemma4", "gpt_oss", "qwen3_next"}  # other cells, or several families
    files = {family.configure.__code__.co_filename for family in FAMILIES.values()}
    lines = {Path(file).stem: len(Path(file).read_text().splitlines()) for file in files}
    assert {name: count for name, count in lines.items() if count > 40 and name not in own} == {}
