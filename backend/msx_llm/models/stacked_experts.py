"""Experts that a file has in two tensors for all: those of models of pictures, in two layouts.

On the hub they lie [experts, in, out]; what transformers 5 saves lies [experts, out, in].
"""

from collections.abc import Collection, Iterator

from msx_llm.models.config import DecoderConfig
from msx_llm.models.mindformers_parts import OfStack, ShapeOf
from msx_sdk.errors import HandlerLoadError

GATE_UP, DOWN = "experts.gate_up_proj", "experts.down_proj"


def stacked_experts(names: Collection[str], config: DecoderConfig, shape: ShapeOf) -> Iterator[tuple[str, OfStack]]:
    """The hub's names of each expert's tensors, with their parts of the stacks. Raises HandlerLoadError for stacks of
    another shape."""
    experts = config.experts
    if experts is None or experts.clamp is not None:
        return
    inner, hidden = experts.inner, config.hidden_size
    for name in sorted(name for name in names if name.endswith(f".{GATE_UP}")):
        place = name.removesuffix(GATE_UP)
        found = shape(name)[1:], shape(place + DOWN)[1:] if place + DOWN in names else ()
        by_inputs = (hidden, 2 * inner), (inner, hidden)
        if found not in (by_inputs, ((2 * inner, hidden), (hidden, inner))) or shape(name)[0] != experts.count:
            raise HandlerLoadError(
                f"{name} and {DOWN} have the shapes {shape(name)} and {found[1]}; config.json makes them "
                f"{experts.count} experts of {by_inputs[0]} and {by_inputs[1]}, or the other way round"
            )
        for expert in range(experts.count):
            own, turned = f"{place}experts.{expert}.", found == by_inputs
            yield f"{own}gate_proj.weight", OfStack(name, expert, turned, 0, inner)
            yield f"{own}up_proj.weight", OfStack(name, expert, turned, inner)
            yield f"{own}down_proj.weight", OfStack(place + DOWN, expert, turned)
