"""Caches that are parameters of two MindIR files."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from msx_core.mindir import MindIRSignature
from msx_llm.mindir import sharing
from msx_llm.mindir.inputs import GraphInputs, TextRow
from msx_llm.mindir.runner import ExportedGraph, TwoFileRunner
from msx_sdk.errors import HandlerLoadError
from tests.llm.mindir.fakes import CONTEXT, NAMES, PROMPT, NumpyDevice, next_token, one_hot, spec
from tests.mindspore_scripts import run_mindspore

SCRIPT = """
import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from types import SimpleNamespace
from msx_llm.mindir.sharing import share_parameters


class Layer(nn.Cell):
    def __init__(self, prefill):
        super().__init__()
        self.cache, self.prefill, self.assign = Parameter(Tensor(np.zeros((4, 2), np.float32))), prefill, ops.Assign()

    def construct(self, x):
        if self.prefill:
            self.assign(self.cache, x + self.cache * 0)
            return x
        return self.cache + x


class Net(nn.Cell):
    def __init__(self, prefill):
        super().__init__()
        self.a, self.b = Layer(prefill), Layer(prefill)

    def construct(self, x):
        return self.b(self.a(x))


x = Tensor(np.ones((4, 2), np.float32))
graphs = []
for name in ("prefill", "increment"):
    ms.export(Net(name == "prefill"), x, file_name=name, file_format="MINDIR")
    graphs.append(SimpleNamespace(cell=nn.GraphCell(ms.load(f"{name}.mindir"))))
prefill, increment = graphs
print(sorted(share_parameters(prefill, increment)))
for value in (3, 5):
    prefill.cell(x * value)
    print(float(increment.cell(x).asnumpy()[0, 0]))
"""


@pytest.mark.mindspore
def test_two_files_use_the_same_memory(tmp_path: Path) -> None:
    """The increment reads each value that the prefill wrote: 1 and twice the prompt's value."""
    pytest.importorskip("mindspore")
    (tmp_path / "share.py").write_text(SCRIPT)
    lines = run_mindspore(tmp_path / "share.py", folder=tmp_path).splitlines()
    assert [line for line in lines if line[:1] in "[0123456789"] == ["['a.cache', 'b.cache']", "7.0", "11.0"]


@pytest.mark.parametrize(("operator", "shared"), [("MatMul", False), ("ScatterUpdate", True)])
def test_weights_in_common_are_no_caches(operator: str, shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = MindIRSignature([], [], frozenset({operator}), frozenset(), "", "MindSpore", "2.10")
    monkeypatch.setattr(sharing, "read_signature", lambda file: found)
    weight = SimpleNamespace(name="weight", shape=(2,), dtype="float32", set_data=lambda other: None)
    network: Any = SimpleNamespace(cell=SimpleNamespace(get_parameters=lambda: [weight]))
    assert sharing.share_caches(network, network, Path("increment.mindir")) is shared


def pair(batch: int = 1) -> tuple[ExportedGraph, ExportedGraph]:
    """Both see the tokens of one text in a place that neither has among its inputs."""
    held: list[int] = []

    def prefill(tensors: list[object]) -> list[object]:
        tokens, lengths = tensors[:2]
        held[:] = [int(one) for one in tokens[0][: int(lengths[0])]]  # type: ignore[index]
        return [one_hot([next_token(held)])]

    def increment(tensors: list[object]) -> list[object]:
        tokens, lengths = tensors[:2]
        held[int(lengths[0]) - 1 :] = [int(tokens[0][0])]  # type: ignore[index]
        return [one_hot([next_token(held)] * batch)]

    def graph(name: str, length: int, run: object) -> ExportedGraph:
        inputs = [spec("tokens", batch, length), spec("valid_length", batch), spec("batch_index", batch)]
        return ExportedGraph(GraphInputs(f"{name}.mindir", inputs, NAMES), run)  # type: ignore[arg-type]

    return graph("prefill", PROMPT, prefill), graph("increment", 1, increment)


def test_one_text_after_the_other() -> None:
    runner = TwoFileRunner(*pair(), NumpyDevice(), CONTEXT, shared=True)
    runner.warm_up(lambda shape: None)
    for text in ([3, 4, 2], [5, 1]):
        text.append(int(runner.prefill(0, 0, text).argmax()))
        for _ in range(4):
            row = runner.decode([0], [text[-1]], [len(text) - 1])[0]
            assert int(row.argmax()) == next_token(text)
            text.append(int(row.argmax()))


@pytest.mark.parametrize(
    ("batch", "shared", "message"),
    [(1, False, "writes no parameter that prefill.mindir has, too"), (3, True, "takes 3 texts: export it with one")],
)
def test_refusals(batch: int, shared: bool, message: str) -> None:
    with pytest.raises(HandlerLoadError, match=message):
        TwoFileRunner(*pair(batch), NumpyDevice(), CONTEXT, shared=shared)


@pytest.mark.parametrize(("length", "kept"), [(4, False), (1, True)])
def test_inputs_that_do_not_depend_on_the_text(length: int, kept: bool) -> None:
    specs = [
        spec("tokens", 2, length),
        spec("init_reset", 1, dtype="bool"),
        spec("batch_index", 2),
        spec("zactivate_len", 3),
        spec("input_position", 2),
    ]
    inputs = GraphInputs("a.mindir", specs, NAMES)
    arrays = inputs.arrays([TextRow([1], 0)] * 2, 0)
    assert [one.tolist() for one in arrays[1:4] if one is not None] == [[kept], [0, 1], [0, 0, 0]]
    assert inputs.caches == []
