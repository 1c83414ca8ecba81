"""A MindSpore model as a function from arrays to arrays, for all kinds of files."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msx_core.context import Context
from msx_core.errors import HandlerLoadError
from msx_core.mindir import DYNAMIC_RANK, MindIRError, MindIRSignature, TensorSpec, read_signature
from msx_core.mindir_collectives import Collective, read_collectives
from msx_core.mindspore.cells import create_cell
from msx_core.mindspore.compute import computation
from msx_core.mindspore.encrypted import Decryption, read_encrypted
from msx_core.mindspore.groups import check_groups, collectives_of, counted, with_own_groups
from msx_core.mindspore.loading import load_shards
from msx_core.mindspore.options import model_file, read_options
from msx_core.mindspore.parallel import Parallel
from msx_core.mindspore.parameters import FORMATS, load_parameters
from msx_core.mindspore.row_check import CELL_WAYS, check_file, check_rows
from msx_core.mindspore.rows import flat, to_array
from msx_core.mindspore.weights import Weights
from msx_core.model_options import DeclaredInput, ModelOptions

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_DTYPES = {"BOOL": "bool", "FP16": "float16", "FP32": "float32", "FP64": "float64", "BF16": "bfloat16"} | {
    f"{sign.upper()}INT{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


@dataclass(frozen=True)
class Network:
    """Call it with a list of one array per input; it returns one array per output, tuples flattened in order.
    Raises TypeError for anything else.

    `outputs` is empty where they are unknown before the first call (a checkpoint).
    """

    inputs: list[TensorSpec]
    outputs: list[TensorSpec]
    run: Callable[..., Any] = field(repr=False)
    cell: Any = field(default=None, repr=False)
    """The graph itself, whose parameters others may use; None for a network of a checkpoint."""

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        if not isinstance(arrays, (list, tuple)) or len(arrays) != len(self.inputs):
            raise TypeError(_call_refused(arrays, self.inputs))
        tensors = [_tensor(array, spec) for array, spec in zip(arrays, self.inputs, strict=True)]
        return [to_array(tensor) for tensor in flat(self.run(*tensors))]

    def describe(self) -> dict[str, Any]:
        """Names, data types and shapes, as the Open Inference Protocol's metadata has them."""
        return {"inputs": [_described(spec) for spec in self.inputs], "outputs": [_described(s) for s in self.outputs]}


def load_network(context: Context, parallel: Parallel | None = None) -> Network:
    """The archive's model, by the suffix of its serialized file: MindIR, or a checkpoint with its model file.

    Call `setup` first; in a group of ranks `init_parallel`, which gives `parallel`. Raises HandlerLoadError.
    """
    path = model_file(context)
    if path.suffix == ".mindir":
        return load_mindir(context)
    if path.suffix in FORMATS:
        return load_checkpoint(context, parallel)
    known = ", ".join([".mindir", *FORMATS])
    raise HandlerLoadError(f"{path.name}: the serialized file must be one of {known}")


def load_mindir(context: Context) -> Network:
    """Raises HandlerLoadError if the serialized file is not a MindIR that this MindSpore can load, was exported for
    another number of ranks, or answers wrongly (`check_file`)."""
    path = model_file(context)
    network = load_mindir_file(path, context)
    check_file(network, path, context)
    return network


def load_mindir_file(path: Path, context: Context, decryption: Decryption | None = None) -> Network:
    """As `load_mindir`, of a file that the manifest does not name, or that is encrypted."""
    signature, used = _read(path, decryption)
    check_groups(path.name, used, context)
    import mindspore as ms

    key = {} if decryption is None else {"dec_key": decryption.key, "dec_mode": decryption.mode}
    try:
        with with_own_groups(path, used, decryption) as file:
            graph = ms.nn.GraphCell(ms.load(str(file), **key))
    except (RuntimeError, ValueError) as error:
        raise HandlerLoadError(f"MindSpore {ms.__version__} cannot load {path.name}: {error}") from error
    _declare(graph, signature.inputs)
    return Network(signature.inputs, signature.outputs, counted(graph, used), graph)


def _read(path: Path, decryption: Decryption | None) -> tuple[MindIRSignature, list[Collective]]:
    """Raises HandlerLoadError."""
    if decryption is not None:
        return read_encrypted(path, decryption)
    try:
        return read_signature(path), read_collectives(path)
    except MindIRError as error:
        raise HandlerLoadError(str(error)) from None


def load_checkpoint(context: Context, parallel: Parallel | None = None) -> Network:
    """The model file's network with the serialized file's parameters; each rank of a group has its own file
    (`{rank}` in its name), or reads its part by the layers of `msx_core.mindspore.layers`. Raises HandlerLoadError."""
    options = read_options(context, "model", ModelOptions)
    source, path = model_file(context, "modelFile"), model_file(context)
    cell = create_cell(source, options, parallel)
    check_groups(source.name, collectives_of(cell), context)
    _load_weights(cell, path)
    cell.set_train(False)
    inputs = _inputs(cell, options.inputs)
    _declare(cell, inputs)
    run = cell if parallel is None or parallel.world_size == 1 else computation(cell, parallel)
    if options.inputs is None and inputs:
        run = _of_unknown_types(run, inputs, source.name)
    network = Network(inputs, [], run)
    check_rows(network, source.name, context, {}, ways=CELL_WAYS)
    return network


def _of_unknown_types(run: Callable[..., Any], inputs: list[TensorSpec], name: str) -> Callable[..., Any]:
    """`run`, which says what to declare where the network does not take the float32 that is guessed."""

    def call(*tensors: Any) -> Any:
        try:
            return run(*tensors)
        except TypeError as error:
            raise TypeError(
                f"{name} does not take float32, the type of inputs that are not declared, for "
                f"{' or '.join(spec.name for spec in inputs)}: give `model: {{inputs: [{{name: {inputs[0].name}, "
                "shape: [-1, 8], datatype: INT32}]}` in model-config.yaml, with its own shape and type"
            ) from error

    return call


def _load_weights(cell: Any, path: Path) -> None:
    if not any(hasattr(inner, "load_shard") for _, inner in cell.cells_and_names()):
        load_parameters(cell, path)
        return
    if path.suffix != ".safetensors":
        raise HandlerLoadError(f"{path.name}: a network of parallel layers reads its part of a .safetensors file")
    with Weights(path) as weights:
        load_shards(cell, weights)


def _inputs(cell: Any, declared: list[DeclaredInput] | None) -> list[TensorSpec]:
    """The inputs as the yaml declares them; otherwise the arguments of construct(), float32 of any shape."""
    if declared is not None:
        return [TensorSpec(item.name, _dtype(item), item.shape) for item in declared]
    parameters = inspect.signature(cell.construct).parameters.values()
    return [TensorSpec(p.name, "float32", DYNAMIC_RANK) for p in parameters if p.default is p.empty]


def _dtype(declared: DeclaredInput) -> str:
    dtype = _DTYPES.get(declared.datatype)
    if dtype is None:
        known = ", ".join(_DTYPES)
        raise HandlerLoadError(f"model-config.yaml, model.inputs: datatype {declared.datatype!r} is not one of {known}")
    return dtype


def _declare(cell: Any, inputs: list[TensorSpec]) -> None:
    """Tells MindSpore which dimensions vary; otherwise it compiles the graph again for each new size."""
    import mindspore as ms

    if any(-1 in spec.shape for spec in inputs) and not any(spec.shape == DYNAMIC_RANK for spec in inputs):
        shapes = [[None if size == -1 else size for size in spec.shape] for spec in inputs]
        pairs = zip(shapes, inputs, strict=True)
        cell.set_inputs(*(ms.Tensor(shape=shape, dtype=getattr(ms, spec.dtype)) for shape, spec in pairs))


def _tensor(array: Array, spec: TensorSpec) -> Any:
    import mindspore as ms
    import numpy as np

    tensor = ms.Tensor(np.ascontiguousarray(array))
    # NumPy has no bfloat16: it travels as float32.
    return tensor.astype(ms.bfloat16) if spec.dtype == "bfloat16" else tensor


def _call_refused(arrays: Any, inputs: Sequence[TensorSpec]) -> str:
    wanted = ", ".join(f"{spec.name}: {spec.dtype}{_shape(spec)}" for spec in inputs)
    given = f"{len(arrays)} in a list" if isinstance(arrays, (list, tuple)) else _shown(arrays)
    return f"the network takes a list with one array for each input, network([{wanted}]), and was given {given}"


def _shape(spec: TensorSpec) -> str:
    return " of any shape" if spec.shape == DYNAMIC_RANK else str(list(spec.shape)).replace("-1", "n")


def _shown(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return type(value).__name__ if shape is None else f"a single array of shape {list(shape)}"


def _described(spec: TensorSpec) -> dict[str, Any]:
    shape = None if spec.shape == DYNAMIC_RANK else list(spec.shape)
    return {"name": spec.name, "datatype": spec.kserve_datatype or spec.dtype, "shape": shape}
