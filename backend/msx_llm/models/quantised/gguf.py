"""Files of llama.cpp: each layer has blocks of a type of its own, or floats."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from msx_core.gguf.blocks import FORMS
from msx_core.gguf.kinds import BY_NAME
from msx_core.gguf.tensors import CODES, SCALES, ZEROS
from msx_llm.models.quantised.format import Array, LinearFormat, QuantisedMatrix, Shape, Tensors
from msx_llm.models.quantised.given import MOST_NAMES, GivenMembers
from msx_llm.models.quantised.packing import grouped
from msx_llm.models.quantised.scheme import Quantisation


def configure(given: Mapping[str, Any]) -> Quantisation:
    """`given` is what the archiver writes: the type of most layers, and others by layer. Raises HandlerLoadError."""
    members = GivenMembers(given)
    others = given.get("types") or {}
    if not isinstance(others, dict) or len(others) > MOST_NAMES:
        raise members.wrong("types", others, f"is not an object of at most {MOST_NAMES} layers and their types")
    own = GivenMembers(others, "quantization_config.types")
    formats = {name: _format(own.only(name, *BY_NAME)) for name in others}
    pairs = members.flag("rotary_pairs", False)
    return Quantisation(_format(members.only("type", *BY_NAME)), formats=formats, rotary_pairs=pairs)


def _format(kind: str) -> LinearFormat | None:
    """None: floats."""
    if (form := FORMS.get(kind)) is None:
        return None
    return GgufFormat(kind=kind, bits=form.bits, group=form.group, zeros=form.zeros)


class GgufFormat(LinearFormat, frozen=True, kw_only=True):
    """Zero points are no integers."""

    kind: str

    def tensors(self, outputs: int, inputs: int) -> Mapping[str, Shape]:
        groups = (outputs, self.groups(inputs))
        found: dict[str, Shape] = {CODES: (outputs, inputs), SCALES: groups}
        return found | ({ZEROS: groups} if self.zeros else {})

    def read(self, files: Tensors, name: str, inputs: slice, outputs: slice) -> QuantisedMatrix:
        groups = grouped(inputs, self.group)

        def part(what: str, columns: slice) -> Array:
            found: Array = files.read(f"{name}.{what}", outputs, columns)
            return np.ascontiguousarray(found.T)

        zeros = part(ZEROS, groups) if self.zeros else None
        return QuantisedMatrix(part(CODES, inputs), part(SCALES, groups), zeros)
