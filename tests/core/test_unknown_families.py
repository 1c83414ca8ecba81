"""The refusal of model types that the engine does not know, over all language models of transformers."""

from __future__ import annotations

import pytest

from msx_core.model_families import DECODERS, EMBEDS, own_families
from msx_core.unknown_families import VLLMS, nearest, unknown_family
from tests.core.model_types import rows

ROWS = rows()
SAID = {
    "vllm": "; vLLM's engine serves it: pack it with --handler vllm, or start with --engine vllm",
    "embedding": "; it makes no texts: serve it with --handler embedding",
    "nobody": "; vLLM's engine is not known to serve it either",
}


def test_the_table_has_all_of_them() -> None:
    assert len(ROWS) == 253
    assert len(VLLMS) == 151


@pytest.mark.parametrize(("kind", "server", "near"), ROWS)
def test_who_serves_it_and_what_is_near(kind: str, server: str, near: str) -> None:
    assert (server == "own") == (kind in DECODERS)
    if server != "own":
        said = unknown_family(kind, DECODERS)
        assert said.startswith(f"config.json, model_type: {kind!r} is not a family that this engine knows; ")
        assert said.endswith(SAID[server])
        known = f"known are {', '.join(DECODERS)}" if near == "-" else f"the nearest that it knows is {near}"
        assert f"; {known}; " in said


def test_a_handler_says_the_nearest_of_its_own() -> None:
    assert nearest("bert_large", own_families(EMBEDS)) == "bert"
    assert nearest("bert_large", DECODERS) is None
