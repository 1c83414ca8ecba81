"""Groups of inputs that have a scale of their own, as `WeightQuantBatchMatmul` takes them."""

from msx_llm.models.quantised.format import LinearFormat
from msx_sdk.errors import HandlerLoadError

MULTIPLE = 32
"""The number of inputs in a group is a multiple of this."""


def check_group(form: LinearFormat) -> None:
    """Raises HandlerLoadError for groups that the operator does not take."""
    if form.group is not None and form.group % MULTIPLE:
        raise HandlerLoadError(
            f"groups of {form.group} inputs are not supported on Ascend, whose operator takes multiples of "
            f"{MULTIPLE}; serve the model on a CPU, without deviceIds, or quantise it with group_size: 128"
        )
