"""Finds which inputs of a MindIR graph are indices into a table, without MindSpore."""

from collections import defaultdict
from os import PathLike
from typing import NamedTuple

from msx_core import protowire as wire
from msx_core.mindir import map_file
from msx_core.protowire import Buffer, Span, WireError

# Field numbers of MindSpore's mind_ir.proto.
_MODEL_GRAPH, _MODEL_PRIMITIVE = 7, 12
_GRAPH_NODE, _GRAPH_PARAMETER, _GRAPH_INPUT = 1, 3, 5
_NODE_INPUT, _NODE_OUTPUT, _NODE_OP_TYPE = 1, 2, 4
_PRIMITIVE_NAME, _PRIMITIVE_OP_TYPE = 1, 2
_VALUE_NAME, _TENSOR_DIMS, _TENSOR_NAME = 1, 1, 7
_REFERENCE = "REF::"

_GATHERS = {"Gather", "GatherV2", "SparseGatherV2", "Embedding", "EmbeddingLookup"}
_SAME_VALUES = {"Cast", "Reshape", "Load", "ExpandDims", "Squeeze", "Flatten", "FlattenExt", "Transpose", "View"}
"""Operators whose output has the values of their first input."""


class _GraphNode(NamedTuple):
    operator: str
    inputs: list[str]
    outputs: list[str]


class _MainGraph(NamedTuple):
    inputs: list[str]
    tables: dict[str, int]
    """Rows of each parameter."""
    nodes: list[_GraphNode]


def index_limits(path: str | PathLike[str]) -> dict[str, int]:
    """Rows of the table, the smallest of several, of each input that a Gather of the main graph takes as indices.

    Empty for a file that cannot be read: whoever loads it says why.
    """
    try:
        with map_file(path) as data:
            return _limits(_graph(data))
    except (OSError, WireError):
        return {}


def _limits(graph: _MainGraph) -> dict[str, int]:
    readers: dict[str, list[_GraphNode]] = defaultdict(list)
    for node in graph.nodes:
        for name in node.inputs:
            readers[name].append(node)
    tables = _tables(graph)
    found = {name.partition(":")[2] or name: _rows(name, tables, readers) for name in graph.inputs}
    return {name: min(rows) for name, rows in found.items() if rows}


def _tables(graph: _MainGraph) -> dict[str, int]:
    """The parameters, and what reads them by way of a node Load."""
    loads = [node for node in graph.nodes if node.operator == "Load" and node.inputs and node.inputs[0] in graph.tables]
    return {**graph.tables, **{name: graph.tables[node.inputs[0]] for node in loads for name in node.outputs}}


def _rows(name: str, tables: dict[str, int], readers: dict[str, list[_GraphNode]]) -> list[int]:
    """Rows of the tables in which the values of `name` are looked up."""
    rows, waiting, seen = [], [name], {name}
    while waiting:
        value = waiting.pop()
        for node in readers[value]:
            if node.operator in _GATHERS:
                rows += [tables[one] for one in node.inputs if one != value and one in tables][:1]
            elif node.operator in _SAME_VALUES and node.inputs[0] == value:
                waiting += [one for one in node.outputs if one not in seen]
                seen.update(node.outputs)
    return rows


def _graph(data: Buffer) -> _MainGraph:
    """The main graph. Raises WireError."""
    operators: dict[str, str] = {}
    graphs: list[Span] = []
    for number, value in wire.fields(data, (0, len(data))):
        if number == _MODEL_PRIMITIVE:
            names = dict(wire.fields(data, wire.as_span(value)))
            texts = [wire.as_text(data, names.get(field, (0, 0))) for field in (_PRIMITIVE_NAME, _PRIMITIVE_OP_TYPE)]
            operators[texts[0]] = texts[1] or texts[0]
        elif number == _MODEL_GRAPH:
            graphs.append(wire.as_span(value))
    found = _MainGraph([], {}, [])
    for graph in graphs:
        _read(data, graph, operators, found)
    return found


def _read(data: Buffer, graph: Span, operators: dict[str, str], found: _MainGraph) -> None:
    for number, value in wire.fields(data, graph):
        if number == _GRAPH_NODE:
            found.nodes.append(_node(data, wire.as_span(value), operators))
        elif number == _GRAPH_INPUT:
            found.inputs.append(_text(data, wire.as_span(value), _VALUE_NAME))
        elif number == _GRAPH_PARAMETER:
            span = wire.as_span(value)
            sizes = [wire.packed_ints(data, one) for field, one in wire.fields(data, span) if field == _TENSOR_DIMS]
            if len(dims := [size for part in sizes for size in part]) > 1:
                found.tables[_text(data, span, _TENSOR_NAME)] = dims[0]


def _node(data: Buffer, span: Span, operators: dict[str, str]) -> _GraphNode:
    node = _GraphNode("", [], [])
    operator = ""
    for number, value in wire.fields(data, span):
        if number == _NODE_INPUT:
            node.inputs.append(wire.as_text(data, value))
        elif number == _NODE_OUTPUT:
            node.outputs.append(wire.as_text(data, value))
        elif number == _NODE_OP_TYPE:
            operator = wire.as_text(data, value)
    name = operator.removeprefix(_REFERENCE)
    return node._replace(operator=operators.get(name, name))


def _text(data: Buffer, span: Span, field: int) -> str:
    return next((wire.as_text(data, value) for number, value in wire.fields(data, span) if number == field), "")
