"""Which layers of a model are quantised."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from msx_llm.models.quantised.format import LinearFormat
from msx_llm.models.quantised.scheme import Quantisation, part_of

COMPILER = import_module("re._compiler")


def test_expressions_of_many_layers_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """`re` remembers 512 expressions; each name of an expert would have all of them compiled again."""
    compiled, compile = list[Any](), COMPILER.compile

    def counted(*given: Any) -> Any:
        compiled.append(given)
        return compile(*given)

    monkeypatch.setattr(COMPILER, "compile", counted)
    kept = tuple(part_of(f"layers.{number}.mlp.gate_proj") for number in range(600))
    quantised = Quantisation(LinearFormat(bits=8), kept)
    found = [quantised.of(f"model.layers.{layer}.mlp.{name}_proj") for layer in (0, 599) for name in ("gate", "up")]
    assert [one is None for one in found] == [True, False, True, False]
    assert len(compiled) <= 2
