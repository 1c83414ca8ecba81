"""Collectives of a MindIR."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_core.mindir import MindIRError
from msx_core.mindir_collectives import WORLD_GROUPS, Collective, group_spans, read_collectives
from tests.core.test_mindir import DATA, field, varint

GRAPH, FUNCTION, PRIMITIVE = 7, 8, 12


def number(name: int, value: int) -> bytes:
    return varint(name << 3) + varint(value)


def attribute(name: str, value: str | int) -> bytes:
    return field(1, name.encode()) + (field(5, value.encode()) if isinstance(value, str) else number(3, value))


def primitive(name: str, operator: str, **attributes: str | int) -> bytes:
    found = b"".join(field(3, attribute(key, value)) for key, value in attributes.items())
    return field(PRIMITIVE, field(1, name.encode()) + field(2, operator.encode()) + found)


def graph(*nodes: str, number: int = GRAPH, **attributes: str | int) -> bytes:
    own = b"".join(field(5, attribute(key, value)) for key, value in attributes.items())
    return field(number, b"".join(field(1, field(4, node.encode()) + own) for node in nodes) + field(2, b"net"))


def written(folder: Path, *parts: bytes) -> Path:
    path = folder / "m.mindir"
    path.write_bytes(b"".join(parts))
    return path


def test_a_file_that_mindspore_wrote() -> None:
    assert read_collectives(DATA / "allreduce.mindir") == [Collective("AllReduce", "hccl_world_group")]
    assert read_collectives(DATA / "two.mindir") == []


def test_one_entry_a_node_of_the_graph_and_of_those_that_it_calls(tmp_path: Path) -> None:
    """Primitives stand behind the graphs, and one may serve several nodes."""
    gather = primitive("AllGather:8", "AllGather", group="tp-0", rank_size=4)
    unused = primitive("AllReduce:2", "AllReduce", group="tp-0")
    nodes = graph("REF::AllGather:8", "REF::Neg:1", "Constant"), graph("REF::AllGather:8", number=FUNCTION)
    found = read_collectives(written(tmp_path, *nodes, gather, unused, primitive("Neg:1", "Neg")))
    assert found == [Collective("AllGather", "tp-0", 4)] * 2


def test_nodes_of_older_files_have_their_own_attributes(tmp_path: Path) -> None:
    assert read_collectives(written(tmp_path, graph("AllReduce", group="g"))) == [Collective("AllReduce", "g")]


def test_the_groups_of_a_convolution_are_not_ranks(tmp_path: Path) -> None:
    content = graph("REF::Conv2D:1"), primitive("Conv2D:1", "Conv2D", group=2)
    assert read_collectives(written(tmp_path, *content)) == []


def test_where_the_names_of_groups_are() -> None:
    data = (DATA / "allreduce.mindir").read_bytes()
    assert [data[start:end] for start, end in group_spans(data)] == [b"hccl_world_group"]
    assert len({len(name) for name in WORLD_GROUPS}) == 1, "one takes another's place"


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    path = written(tmp_path, (DATA / "allreduce.mindir").read_bytes()[:600])
    with pytest.raises(MindIRError, match=r"m\.mindir is not a MindIR file, or it is truncated"):
        read_collectives(path)
