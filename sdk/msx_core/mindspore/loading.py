"""Loads weights from safetensors files into this rank's part of a network."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from msx_core.context import Context
from msx_core.errors import HandlerLoadError
from msx_core.mindspore.options import model_file
from msx_core.mindspore.weights import INDEX, Weights

_ALIASES = {
    "gamma": "weight",
    "beta": "bias",
    "embedding_table": "weight",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}
"""MindSpore's names of parameters, and the names in files that others wrote."""


def without_data() -> Any:
    """A context manager: networks made in it have parameters with shapes, but without memory until they are loaded."""
    from mindspore.nn.utils import no_init_parameters

    return no_init_parameters()


def load_shards(cell: Any, weights: Weights, prefix: str = "") -> None:
    """Fill every parameter of an `nn.Cell`; the layers of `msx_core.mindspore.layers` read their own part only, and a
    cell with a method `load_shard(weights, name)` fills its own parameters, and where its `loads_inner` is true those
    of the cells in it.

    A parameter's name in the file is its path of attributes in the network (`layers.0.mlp.up.weight`), after
    `prefix`; MindSpore's `gamma`, `beta` and the like are also found as `weight`, `bias` …
    Raises HandlerLoadError for what is missing or of another shape.
    """
    if hasattr(cell, "load_shard"):
        cell.load_shard(weights, prefix)
    else:
        for name, parameter in cell.parameters_dict(recurse=False).items():
            _load_whole(parameter, weights, prefix, _attribute(cell, parameter, name))
    if getattr(cell, "loads_inner", False):
        return
    for name, inner in cell.name_cells().items():
        load_shards(inner, weights, ".".join(filter(None, (prefix, name))))


def weights_path(context: Context) -> Path:
    """The serialized file, or the archive's `model.safetensors.index.json`. Raises HandlerLoadError."""
    if not context.manifest.get("model", {}).get("serializedFile") and (context.model_dir / INDEX).is_file():
        return context.model_dir / INDEX
    return model_file(context)


_again: ContextVar[bool] = ContextVar("again", default=False)


@contextmanager
def loading_again() -> Iterator[None]:
    """Lets parameters keep their place in memory, which compiled graphs know: those do not see `set_data`."""
    token = _again.set(True)
    try:
        yield
    finally:
        _again.reset(token)


def fill(parameter: Any, array: Any) -> None:
    """Sets a parameter's values, in its own data type."""
    import mindspore as ms
    import numpy as np

    value = ms.Tensor(np.ascontiguousarray(array)).astype(parameter.dtype)
    if _again.get():
        ms.ops.assign(parameter, value)
    else:
        parameter.set_data(value)


def parameter_size(cell: Any) -> int:
    """Bytes of a cell's parameters, loaded or not."""
    return sum(int(parameter.size) * int(parameter.itemsize) for parameter in cell.get_parameters())


def _attribute(cell: Any, parameter: Any, name: str) -> str:
    """The attribute that holds the parameter; a parameter's name begins with the names of the cells around it."""
    return next((key for key, value in cell._params.items() if value is parameter), name)


def _load_whole(parameter: Any, weights: Weights, place: str, attribute: str) -> None:
    names = [".".join(filter(None, (place, name))) for name in (attribute, _ALIASES.get(attribute)) if name]
    name = next((name for name in names if name in weights), None)
    if name is None:
        raise HandlerLoadError(f"the weights have no tensor {' or '.join(names)}, which the network needs")
    if weights.shape(name) != tuple(parameter.shape):
        raise HandlerLoadError(
            f"{name}: the file has the shape {weights.shape(name)}, the network {tuple(parameter.shape)}"
        )
    fill(parameter, weights.read(name))
