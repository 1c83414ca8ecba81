from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Any

import pytest

from msx_core.mindir import (
    DYNAMIC_RANK,
    EncryptedMindIRError,
    MindIRError,
    MindIRSignature,
    TensorSpec,
    parse_signature,
    read_signature,
)

DATA = Path(__file__).parent / "data"


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number: int, payload: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(payload)) + payload


@pytest.mark.parametrize(
    ("name", "inputs", "outputs"),
    [
        ("dynamic", [TensorSpec("x", "float32", (-1, 4))], [TensorSpec("output_0", "float32", (-1, 3))]),
        ("bfloat16", [TensorSpec("a", "bfloat16", (2, 3))], [TensorSpec("output_0", "bfloat16", (6,))]),
        (
            "two",
            [TensorSpec("a", "float32", (2, 3)), TensorSpec("b", "int64", (2,))],
            [
                TensorSpec("output_0", "float16", (2, 3)),
                TensorSpec("output_1", "int64", (2,)),
                TensorSpec("output_2", "float32", (2, 3)),
                TensorSpec("output_3", "bool", (2,)),
            ],
        ),
        (
            "scalar",
            [TensorSpec("a", "float32", ()), TensorSpec("b", "float32", (1,))],
            [TensorSpec("output_0", "float32", (1,))],
        ),
        (
            "seq",
            [
                TensorSpec("xs.0", "float32", (2,)),
                TensorSpec("xs.1", "float32", (2,)),
                TensorSpec("n", "int64", ()),
            ],
            [TensorSpec("output_0", "float32", (2,)), TensorSpec("output_1", "int64", ())],
        ),
        (
            "str",
            [TensorSpec("x", "float32", (2,))],
            [
                TensorSpec("output_0", "float32", (2,)),
                TensorSpec("output_1", "int64", ()),
                TensorSpec("output_2", "str", ()),
            ],
        ),
    ],
)
def test_inputs_and_outputs(name: str, inputs: list[TensorSpec], outputs: list[TensorSpec]) -> None:
    signature = read_signature(DATA / f"{name}.mindir")
    assert signature.inputs == inputs
    assert signature.outputs == outputs
    assert (signature.producer, signature.producer_version) == ("MindSpore", "2.10.0")


def test_dynamic_rank() -> None:
    assert read_signature(DATA / "dynrank.mindir").inputs[0].shape == DYNAMIC_RANK


def test_operators_of_sub_graphs_are_found() -> None:
    assert read_signature(DATA / "ctl.mindir").op_types >= {"Switch", "Sub", "Greater"}


def test_operators_that_nodes_name_themselves_are_found() -> None:
    """Older files have no list of primitives; `REF::` leads to another graph, `Constant` is not an operator."""
    graph, function = (
        b"".join(field(1, field(4, operator)) for operator in operators)
        for operators in ([b"Add", b"REF::other", b"Constant"], [b"Mul"])
    )
    content = field(7, graph + field(2, b"main")) + field(8, function + field(2, b"other"))
    assert parse_signature(content, "old.mindir").op_types == {"Add", "Mul"}


def test_weights_beside_the_file_are_named() -> None:
    assert read_signature(DATA / "big_graph.mindir").external_files == {"big_variables/data_0"}
    assert read_signature(DATA / "dynamic.mindir").external_files == frozenset()


@pytest.mark.parametrize(
    ("dtype", "kserve"),
    [
        ("float32", "FP32"),
        ("int8", "INT8"),
        ("uint16", "UINT16"),
        ("bfloat16", "BF16"),
        ("bool", "BOOL"),
        ("str", "BYTES"),
        ("complex64", None),
    ],
)
def test_kserve_datatype(dtype: str, kserve: str | None) -> None:
    assert TensorSpec("x", dtype, ()).kserve_datatype == kserve


def test_part_of_a_file(tmp_path: Path) -> None:
    content = (DATA / "dynamic.mindir").read_bytes()
    inside = tmp_path / "archive"
    inside.write_bytes(b"before" + content + b"after")
    found = read_signature(inside, offset=6, length=len(content))
    assert found == read_signature(DATA / "dynamic.mindir")


def test_weights_are_not_read(tmp_path: Path) -> None:
    """A sparse 8 GiB weight in the middle of the graph: reading it would show in this process's memory."""
    size = 8 << 30
    weight = field(7, b"w") + varint(9 << 3 | 2) + varint(size)
    before = field(2, b"net") + varint(3 << 3 | 2) + varint(len(weight) + size) + weight
    tensor = field(2, b"\x08\x05\x10\x01")
    after = field(5, field(1, b"g:x") + tensor)
    path = tmp_path / "large.mindir"
    with path.open("wb") as file:
        file.write(varint(7 << 3 | 2) + varint(len(before) + size + len(after)) + before)
        file.seek(size, os.SEEK_CUR)
        file.write(after)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert read_signature(path).inputs == [TensorSpec("x", "float32", (5,))]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 64 * 1024


def test_truncated_anywhere_in_the_graph_is_refused() -> None:
    content = (DATA / "two.mindir").read_bytes()
    whole = parse_signature(content, "two.mindir")
    refused = [length for length in range(len(content)) if _refuses(content[:length], whole)]
    assert len(refused) > len(content) * 0.9


def _refuses(content: bytes, whole: MindIRSignature) -> bool:
    try:
        # Cut between two fields after the graph, only names of operators are missing.
        assert parse_signature(content, "two.mindir").inputs == whole.inputs
    except MindIRError:
        return True
    return False


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00" * 64, b"PK\x03\x04 a zip file", b"import os\n", b"\xff" * 40, b"\x80\x02}q\x00."],
    ids=["empty", "zeros", "zip", "python", "ones", "pickle"],
)
def test_foreign_file_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.mindir"
    path.write_bytes(content)
    with pytest.raises(MindIRError, match=r"foreign\.mindir is not a MindIR file"):
        read_signature(path)


def test_endless_nesting_is_refused() -> None:
    """Deep tuples of nothing: small on disk, endless for a recursive reader."""
    nested = b"\x80\x01\x14"
    for _ in range(3000):
        nested = field(17, nested)
    content = field(7, field(2, b"net") + field(5, field(1, b"g:x") + field(5, nested)))
    with pytest.raises(MindIRError, match="nest deeper than 100"):
        parse_signature(content, "deep.mindir")


def test_encrypted_file_says_so() -> None:
    with pytest.raises(EncryptedMindIRError, match="encrypted"):
        read_signature(DATA / "enc.mindir")


@pytest.mark.mindspore
def test_agrees_with_mindspore(tmp_path: Path) -> None:
    ms = pytest.importorskip("mindspore")

    class Net(ms.nn.Cell):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.dense = ms.nn.Dense(6, 2)

        def construct(self, x: Any, scale: Any) -> Any:
            return self.dense(x) * scale

    args = (ms.Tensor(shape=[None, 6], dtype=ms.float32), ms.Tensor([2.0], ms.float32))
    ms.export(Net(), *args, file_name=str(tmp_path / "net"), file_format="MINDIR")
    from mindspore.train import mind_ir_pb2

    model = mind_ir_pb2.ModelProto()
    model.ParseFromString((tmp_path / "net.mindir").read_bytes())
    signature = read_signature(tmp_path / "net.mindir")
    assert [s.name for s in signature.inputs] == [v.name.split(":", 1)[1] for v in model.graph.input]
    assert [s.shape for s in signature.inputs] == [tuple(v.tensor[0].dims) for v in model.graph.input]
    assert [s.shape for s in signature.outputs] == [tuple(v.tensor[0].dims) for v in model.graph.output]
    assert signature.op_types == {primitive.op_type for primitive in model.primitives}
    assert {s.dtype for s in signature.inputs + signature.outputs} == {"float32"}
