"""Reads the inputs and outputs of a MindIR file, without MindSpore and without reading its weights."""

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from msx_core import protowire as wire
from msx_core.file_kinds import HEAD, MINDIR, mistaken
from msx_core.protowire import Buffer, Span, WireError

DYNAMIC_RANK = (-2,)

# Field numbers of MindSpore's mind_ir.proto.
_MODEL_PRODUCER, _MODEL_PRODUCER_VERSION, _MODEL_VERSION = 2, 3, 5
_MODEL_GRAPH, _MODEL_FUNCTION, _MODEL_PRIMITIVE = 7, 8, 12
_GRAPH_NODE, _GRAPH_NAME, _GRAPH_PARAMETER, _GRAPH_INPUT, _GRAPH_OUTPUT = 1, 2, 3, 5, 6
_NODE_OP_TYPE, _PRIMITIVE_NAME, _PRIMITIVE_OP_TYPE = 4, 1, 2
_VALUE_NAME, _VALUE_TENSOR, _VALUE_TYPE = 1, 2, 5
_TENSOR_DIMS, _TENSOR_DTYPE, _TENSOR_EXTERNAL = 1, 2, 12
_EXTERNAL_LOCATION = 1
_TYPE_TENSORS, _TYPE_KIND, _TYPE_VALUES = 12, 16, 17
_KIND_STRING, _KIND_SCALAR = 8, 39

_DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "str", 9: "bool",
    10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
    17: "float64", 18: "qint4x2",
}  # fmt: skip
_KSERVE = {
    "float16": "FP16", "float32": "FP32", "float64": "FP64", "bfloat16": "BF16", "bool": "BOOL", "str": "BYTES",
    **{f"{sign}int{bits}": f"{sign}int{bits}".upper() for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip

# How MindSpore begins every block of a file that was exported with `enc_key`.
_ENCRYPTED_MAGIC = bytes.fromhex("d85e3a7f")


MOST_NESTED = 100


class MindIRError(ValueError):
    """The file is not a MindIR file, or not a whole one."""


class EncryptedMindIRError(MindIRError):
    """The file was exported with `enc_key`; nothing in it can be read without the key."""


@dataclass(frozen=True)
class TensorSpec:
    """One named tensor. `shape` has -1 for a dynamic dimension, and is `DYNAMIC_RANK` if even the rank is unknown."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def kserve_datatype(self) -> str | None:
        """The name of the data type in the Open Inference Protocol; None if the protocol does not have it."""
        return _KSERVE.get(self.dtype)


_WRITES = frozenset({"Assign", "AssignAdd", "ScatterUpdate", "ScatterNdUpdate"})


@dataclass(frozen=True)
class MindIRSignature:
    """Inputs and outputs of a MindIR graph.

    Tuples are flattened in order. An input has the name of its `construct` argument (elements of a tuple get
    `.0`, `.1`, …); MindIR does not name outputs, so they are `output_0`, `output_1`, ….
    `external_files` are the relative paths of weights kept beside the file (`net_variables/data_0`).
    """

    inputs: list[TensorSpec]
    outputs: list[TensorSpec]
    op_types: frozenset[str]
    external_files: frozenset[str]
    graph_name: str
    producer: str
    producer_version: str

    @property
    def writes_parameters(self) -> bool:
        """An operator writes a parameter, as caches are that two graphs share by name."""
        return not _WRITES.isdisjoint(self.op_types)


def read_signature(path: str | PathLike[str], *, offset: int = 0, length: int | None = None) -> MindIRSignature:
    """Read the signature of the MindIR file at `path`, or of `length` bytes at `offset` in it.

    Raises MindIRError, which names the file, if it is truncated, encrypted or something else.
    """
    with map_file(path) as data:
        end = len(data) if length is None else offset + length
        return parse_signature(data, fspath(path), (offset, end))


@contextmanager
def map_file(path: str | PathLike[str]) -> Iterator[Buffer]:
    """The file's bytes by mmap; `b""` for an empty file, which cannot be mapped."""
    with open(path, "rb") as file:
        file.seek(0, 2)
        if file.tell() == 0:
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            # Without this the kernel reads ahead into the weights that we jump over.
            data.madvise(mmap.MADV_RANDOM)
            yield data


def answers_beside(path: Path) -> Path:
    """The file of rows and answers that belongs to a MindIR: `net.expected.npz` beside `net.mindir`, or beside
    `net_graph.mindir`."""
    return path.with_name(f"{path.stem.removesuffix('_graph')}.expected.npz")


def parse_signature(data: Buffer, name: str, span: Span | None = None) -> MindIRSignature:
    """Reads the signature from MindIR bytes; errors call them `name`."""
    start, end = span or (0, len(data))
    if bytes(data[start : start + 4]) == _ENCRYPTED_MAGIC:
        raise EncryptedMindIRError(f"{name} is an encrypted MindIR file; its signature cannot be read.")
    if other := mistaken(name, MINDIR, bytes(data[start : min(start + HEAD, end)])):
        raise MindIRError(f"{other}.")
    try:
        return _model(data, (start, end))
    except WireError as error:
        raise MindIRError(f"{name} is not a MindIR file, or it is truncated: {error}.") from None


def _model(data: Buffer, span: Span) -> MindIRSignature:
    texts = {_MODEL_PRODUCER: "", _MODEL_PRODUCER_VERSION: "", _MODEL_VERSION: ""}
    graphs: list[Span] = []
    functions: list[Span] = []
    operators: set[str] = set()
    for number, value in wire.fields(data, span):
        if number in texts:
            texts[number] = wire.as_text(data, value)
        elif number == _MODEL_GRAPH:
            graphs.append(wire.as_span(value))
        elif number == _MODEL_FUNCTION:
            functions.append(wire.as_span(value))
        elif number == _MODEL_PRIMITIVE:
            operators.add(_primitive(data, wire.as_span(value)))
    if len(graphs) != 1:
        raise WireError(f"{len(graphs)} main graphs instead of one")
    for graph in [*graphs, *functions]:
        operators |= _operators(data, graph)
    version = texts[_MODEL_PRODUCER_VERSION] or texts[_MODEL_VERSION]
    return _signature(data, graphs[0], frozenset(operators), texts[_MODEL_PRODUCER], version)


def _signature(data: Buffer, graph: Span, operators: frozenset[str], producer: str, version: str) -> MindIRSignature:
    inputs: list[TensorSpec] = []
    outputs: list[TensorSpec] = []
    external: set[str] = set()
    graph_name = ""
    for number, value in wire.fields(data, graph):
        if number == _GRAPH_INPUT:
            inputs += _value(data, wire.as_span(value))
        elif number == _GRAPH_OUTPUT:
            outputs += _value(data, wire.as_span(value))
        elif number == _GRAPH_PARAMETER:
            external |= _external(data, wire.as_span(value))
        elif number == _GRAPH_NAME:
            graph_name = wire.as_text(data, value)
    if not graph_name and not inputs and not outputs:
        raise WireError("a graph without a name, inputs or outputs")
    named = [TensorSpec(f"output_{i}", spec.dtype, spec.shape) for i, spec in enumerate(outputs)]
    return MindIRSignature(inputs, named, operators, frozenset(external), graph_name, producer, version)


def _value(data: Buffer, span: Span) -> list[TensorSpec]:
    name, tensors, kinds = "", [], []
    for number, value in wire.fields(data, span):
        if number == _VALUE_NAME:
            name = wire.as_text(data, value).partition(":")[2] or wire.as_text(data, value)
        elif number == _VALUE_TENSOR:
            tensors.append(wire.as_span(value))
        elif number == _VALUE_TYPE:
            kinds.append(wire.as_span(value))
    specs = [_tensor(data, tensor, name) for tensor in tensors]
    return specs + [spec for kind in kinds for spec in _typed(data, kind, name)]


def _typed(data: Buffer, span: Span, name: str, depth: int = 0) -> list[TensorSpec]:
    """A value that is not a plain tensor: a tuple or list (of tuples …), a scalar or a string."""
    if depth > MOST_NESTED:
        raise WireError(f"its tuples nest deeper than {MOST_NESTED}")
    kind, tensors, items = 0, [], []
    for number, value in wire.fields(data, span):
        if number == _TYPE_KIND:
            kind = wire.as_int(value)
        elif number == _TYPE_TENSORS:
            tensors.append(wire.as_span(value))
        elif number == _TYPE_VALUES:
            items.append(wire.as_span(value))
    if kind == _KIND_STRING:
        return [TensorSpec(name, "str", ())]
    specs = [_tensor(data, tensor, name) for tensor in tensors]
    if kind == _KIND_SCALAR:  # written with dims [0]
        return [TensorSpec(name, spec.dtype, ()) for spec in specs]
    return specs + [spec for i, item in enumerate(items) for spec in _typed(data, item, f"{name}.{i}", depth + 1)]


def _tensor(data: Buffer, span: Span, name: str) -> TensorSpec:
    shape: list[int] = []
    dtype = 0
    for number, value in wire.fields(data, span):
        if number == _TENSOR_DIMS:
            shape += wire.packed_ints(data, value)
        elif number == _TENSOR_DTYPE:
            dtype = wire.as_int(value)
    if dtype not in _DTYPES:
        raise WireError(f"data type {dtype} of {name!r} is unknown")
    return TensorSpec(name, _DTYPES[dtype], tuple(shape))


def _external(data: Buffer, span: Span) -> set[str]:
    return {
        wire.as_text(data, location)
        for external in wire.messages(data, span, _TENSOR_EXTERNAL)
        for location in wire.messages(data, external, _EXTERNAL_LOCATION)
    }


def _primitive(data: Buffer, span: Span) -> str:
    names = dict(wire.fields(data, span))
    return wire.as_text(data, names.get(_PRIMITIVE_OP_TYPE) or names.get(_PRIMITIVE_NAME) or (0, 0))


def _operators(data: Buffer, graph: Span) -> set[str]:
    """The operators that nodes name themselves: `REF::…` refers to the list of primitives, or to another graph."""
    found = {
        wire.as_text(data, operator)
        for node in wire.messages(data, graph, _GRAPH_NODE)
        for operator in wire.messages(data, node, _NODE_OP_TYPE)
    }
    return {name for name in found if name != "Constant" and not name.startswith("REF::")}
