"""Quantised layers that cannot be divided over ranks by their inputs: groups of inputs have one scale."""

from collections.abc import Iterator

from msx_llm.models.config import DecoderConfig
from msx_llm.models.quantised.format import LinearFormat
from msx_llm.models.quantised.scheme import ROOT, Quantisation, format_of_experts
from msx_llm.models.weights import FIRST_EXPERT, counted_shapes
from msx_sdk.errors import HandlerLoadError

BY_INPUTS = ("o_proj.weight", "down_proj.weight")


def check_groups(config: DecoderConfig, ranks: int) -> None:
    """Check that each rank has whole groups. Raises HandlerLoadError, which names the layer."""
    if config.quantised is None or ranks == 1:
        return
    for layer in range(config.layers):
        for name, form, inputs in _divided(config, config.quantised, layer):
            _check(f"{ROOT}layers.{layer}.{name}", form, inputs, ranks)


def _divided(config: DecoderConfig, quantised: Quantisation, layer: int) -> Iterator[tuple[str, LinearFormat, int]]:
    """Layers that stay integers and are divided by inputs, with the number of these."""
    place = f"{ROOT}layers.{layer}"
    for name, shape, _ in counted_shapes(config, layer):
        numbers = name.startswith(FIRST_EXPERT) or (config.latent is not None and name.startswith("self_attn."))
        if name.endswith(BY_INPUTS) and not numbers:
            own = name.removesuffix(".weight")
            if (form := quantised.of(f"{place}.{own}")) is not None:
                yield own, form, shape[1]
    experts = config.experts if config.sparse(layer) else None
    form = None if experts is None else format_of_experts(quantised, place, experts)
    if experts is not None and form is not None and not experts.whole:
        yield "mlp.experts", form, experts.inner


def _check(layer: str, form: LinearFormat, inputs: int, ranks: int) -> None:
    if form.ordered:
        raise HandlerLoadError(
            f"{layer}: groups of desc_act have inputs of all ranks, so that they cannot be divided over "
            f"tensorParallel: {ranks}; use pipelineStages"
        )
    if form.group is not None and inputs // ranks % form.group:
        raise HandlerLoadError(
            f"{layer}: groups of {form.group} do not divide the {inputs // ranks} inputs that each of "
            f"tensorParallel: {ranks} ranks has; use fewer ranks or pipelineStages"
        )
