"""The tensors of a quantised model's files."""

from msx_llm.models.quantised.format import LinearFormat, Shape
from msx_llm.models.quantised.scheme import ROOT, Quantisation
from msx_sdk.errors import HandlerLoadError

WEIGHT, BIAS = ".weight", ".bias"


def stored_shapes(
    shapes: dict[str, Shape], prefix: str, quantisation: Quantisation | None
) -> tuple[dict[str, Shape], set[str]]:
    """The tensors of the files, for those of a model that is not quantised; and names of some that may be there, too.
    Raises HandlerLoadError where groups do not divide a layer's inputs."""
    if quantisation is None:
        return shapes, set()
    stored, further = dict(shapes), set[str]()
    for name in [name for name in shapes if name.endswith(WEIGHT)]:
        layer = name.removesuffix(WEIGHT)
        if (form := quantisation.of(ROOT + layer.removeprefix(prefix))) is None:
            continue
        outputs, inputs = stored.pop(name)
        check_groups(form, layer, inputs)
        stored.update((f"{layer}.{kind}", shape) for kind, shape in form.tensors(outputs, inputs).items())
        further.update(f"{layer}.{kind}" for kind in form.further())
        if form.brings_bias:
            stored.pop(layer + BIAS, None)
    return stored, further


def check_groups(form: LinearFormat, layer: str, inputs: int) -> None:
    if form.group is not None and inputs % form.group:
        raise HandlerLoadError(
            f"{layer} has {inputs} inputs, which groups of {form.group} do not divide; quantise it with another "
            "group_size"
        )
