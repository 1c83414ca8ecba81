"""The server knows the families of the engine without importing it."""

from __future__ import annotations

from msx_core.model_families import DECODERS, ENCODERS, OF_PICTURES
from msx_llm.embedding import config as encoders
from msx_llm.models.registry import FAMILIES
from msx_llm.models.text_part import TEXT_PARTS


def test_the_lists_are_those_of_the_engine() -> None:
    assert set(DECODERS) == FAMILIES.keys() | TEXT_PARTS.keys()
    assert set(OF_PICTURES) == TEXT_PARTS.keys()
    assert set(ENCODERS) == set(encoders.ENCODERS)
