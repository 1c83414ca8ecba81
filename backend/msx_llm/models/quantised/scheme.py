"""Which layers of a model are quantised, and how."""

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import product

import msgspec

from msx_llm.models.experts import ExpertsConfig
from msx_llm.models.quantised.format import LinearFormat

LAYERS = re.compile(r"layers\.\d+\..*_proj")
"""The linear layers of decoders; embedding and head are never quantised."""


ROOT = "model."
"""The prefix of names here, whatever the files have before `layers`."""


class Quantisation(msgspec.Struct, frozen=True):
    format: LinearFormat | None
    """The format of all layers, but for those that `kept` or `formats` name."""
    kept: tuple[str, ...] = ()
    """Regular expressions, which match names of layers from their beginning on."""
    formats: Mapping[str, LinearFormat | None] = {}
    """Formats by names of layers."""
    fused: Mapping[str, str] = {}
    """Names in a layer, and those of the file's linear layers that hold them beside others."""
    rotary_pairs: bool = False
    """Whatever the family, neighbours of a head turn together in these files."""

    def of(self, name: str) -> LinearFormat | None:
        """None: it is not quantised."""
        if LAYERS.search(name) is None:
            return None
        layer, module, linear = name.rsplit(".", 2)
        place = f"{module}.{linear}"
        name = f"{layer}.{self.fused.get(place, place)}"
        if self.kept and _any_of(self.kept).match(name):
            return None
        return self.formats.get(name, self.format)

    @property
    def ordered(self) -> bool:
        return self.format is not None and self.format.ordered


@lru_cache(maxsize=8)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Compile them once: experts have thousands of names, and `re` itself remembers 512 expressions."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


def format_of_experts(quantisation: Quantisation, layer: str, experts: ExpertsConfig) -> LinearFormat | None:
    """Format of all experts of the layer, which stay integers; None: they become numbers, because they have several
    formats, or sort their inputs, or are clamped."""
    names = product(range(experts.count), ("gate_proj", "up_proj", "down_proj"))
    form, *others = {quantisation.of(f"{layer}.mlp.experts.{expert}.{name}") for expert, name in names}
    return None if form is None or others or form.ordered or experts.clamp is not None else form


def part_of(name: str) -> str:
    """The expression for layers whose names have this in them."""
    return f".*{re.escape(name)}"
