"""vLLM's `use_beam_search`, as the model's handler is asked for it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.sampling import SamplingFields, sampling_params
from msx_sdk.generation import BeamSearch, Capabilities

OFFERED = Capabilities(generate=True, beam_search=True)


def asked(offered: Capabilities = OFFERED, **members: Any) -> BeamSearch | None:
    return sampling_params(msgspec.convert(members, SamplingFields), offered).beam_search


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ({"use_beam_search": True}, BeamSearch()),
        ({"use_beam_search": True, "length_penalty": 0}, BeamSearch(length_penalty=0.0)),
        ({"use_beam_search": True, "early_stopping": "never"}, BeamSearch(early_stopping="never")),
        ({"use_beam_search": False, "length_penalty": 2}, None),
        ({"early_stopping": True}, None),
    ],
)
def test_its_members(members: dict[str, Any], found: BeamSearch | None) -> None:
    assert asked(**members) == found


def test_what_is_refused() -> None:
    with pytest.raises(WrongParameter, match="not together with stream"):
        asked(use_beam_search=True, stream=True)
    with pytest.raises(WrongParameter, match="does not search with beams"):
        asked(Capabilities(generate=True), use_beam_search=True)
