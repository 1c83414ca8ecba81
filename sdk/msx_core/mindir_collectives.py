"""Reads the collectives of a MindIR file and their groups, without MindSpore."""

from collections.abc import Iterator
from os import PathLike, fspath
from typing import NamedTuple

from msx_core import protowire as wire
from msx_core.mindir import MindIRError, map_file
from msx_core.protowire import Buffer, Span, WireError

WORLD_GROUPS = ("hccl_world_group", "mccl_world_group", "nccl_world_group")
"""The names of the group of all ranks where a file may have been exported: on Ascend (also without initialisation), on
a CPU, on a GPU. They have one length."""

# Field numbers of MindSpore's mind_ir.proto.
_MODEL_GRAPH, _MODEL_FUNCTION, _MODEL_PRIMITIVE = 7, 8, 12
_GRAPH_NODE, _NODE_OP_TYPE, _NODE_ATTRIBUTE = 1, 4, 5
_PRIMITIVE_NAME, _PRIMITIVE_OP_TYPE, _PRIMITIVE_ATTRIBUTE = 1, 2, 3
_ATTRIBUTE_NAME, _ATTRIBUTE_INT, _ATTRIBUTE_STRING = 1, 3, 5
_REFERENCE = "REF::"


class Collective(NamedTuple):
    """One node of the graph. `size` is the number of ranks for which it was exported; 0 if the file does not say."""

    operator: str
    group: str
    size: int = 0


def read_collectives(path: str | PathLike[str]) -> list[Collective]:
    """One entry for each node of the graph and of the graphs that it calls. Raises MindIRError, which names the
    file."""
    with map_file(path) as data:
        return collectives_in(data, fspath(path))


def collectives_in(data: Buffer, name: str) -> list[Collective]:
    """The same for MindIR bytes; errors call them `name`."""
    try:
        return list(_collectives(data))
    except WireError as error:
        raise MindIRError(f"{name} is not a MindIR file, or it is truncated: {error}.") from None


def group_spans(data: Buffer) -> Iterator[Span]:
    """The places of group names in the file."""
    for span, attribute in _attributes(data):
        found = _group(data, wire.messages(data, span, attribute))
        if found is not None:
            yield found


def _attributes(data: Buffer) -> Iterator[tuple[Span, int]]:
    """Primitives and nodes, each with the number of its field for attributes."""
    for number, value in wire.fields(data, (0, len(data))):
        if number == _MODEL_PRIMITIVE:
            yield wire.as_span(value), _PRIMITIVE_ATTRIBUTE
        elif number in (_MODEL_GRAPH, _MODEL_FUNCTION):
            for node in wire.messages(data, wire.as_span(value), _GRAPH_NODE):
                yield node, _NODE_ATTRIBUTE


def _collectives(data: Buffer) -> Iterator[Collective]:
    """Nodes refer to primitives, which may come later in the file."""
    known: dict[str, Collective | None] = {}
    nodes: list[tuple[str, Collective | None]] = []
    for span, attribute in _attributes(data):
        if attribute == _PRIMITIVE_ATTRIBUTE:
            texts = {_PRIMITIVE_NAME: "", _PRIMITIVE_OP_TYPE: ""}
            _read(data, span, texts)
            name, operator = texts.values()
            known[name] = _collective(data, span, attribute, operator or name)
        else:
            texts = {_NODE_OP_TYPE: ""}
            _read(data, span, texts)
            nodes.append((texts[_NODE_OP_TYPE], _collective(data, span, attribute, texts[_NODE_OP_TYPE])))
    for operator, own in nodes:
        found = known.get(operator.removeprefix(_REFERENCE)) if operator.startswith(_REFERENCE) else own
        if found is not None:
            yield found


def _collective(data: Buffer, span: Span, attribute: int, operator: str) -> Collective | None:
    attributes = list(wire.messages(data, span, attribute))
    group = _group(data, attributes)
    return None if group is None else Collective(operator, wire.as_text(data, group), _size(data, attributes))


def _group(data: Buffer, attributes: Iterator[Span] | list[Span]) -> Span | None:
    """The name of the group. A convolution has a number as its attribute of this name."""
    for span in attributes:
        named, text = False, None
        for number, value in wire.fields(data, span):
            if number == _ATTRIBUTE_NAME:
                named = wire.as_text(data, value) == "group"
            elif number == _ATTRIBUTE_STRING:
                text = wire.as_span(value)
        if named and text is not None and text[1] > text[0]:
            return text
    return None


def _size(data: Buffer, attributes: list[Span]) -> int:
    for span in attributes:
        fields = dict(wire.fields(data, span))
        if wire.as_text(data, fields.get(_ATTRIBUTE_NAME, (0, 0))) == "rank_size":
            return wire.as_int(fields.get(_ATTRIBUTE_INT, 0))
    return 0


def _read(data: Buffer, span: Span, texts: dict[int, str]) -> None:
    for number, value in wire.fields(data, span):
        if number in texts:
            texts[number] = wire.as_text(data, value)
