"""Declarations of distributed servables, and what a start script finds out of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_mindspore_serving.packages.mindspore_serving.server.distributed.declared import Declared, read_declared
from tests.compat.mindspore_serving.packages.servables import ADD, declared, refused, write

MATMUL = """
from mindspore_serving.server import distributed
model = distributed.declare_servable(rank_size=8, stage_size=2, with_batch_dim=False)

@register_method(output_names=["y"])
def predict(x):
    y = add_stage(model, x, outputs_count=1)
    return y
"""
DISTRIBUTED = "from mindspore_serving.server import distributed, register\n"
INPUTS = "without_batch_dim_inputs"
REFUSED = [
    ("0, 1, with_batch_dim=1", "Parameter 'with_batch_dim' should be bool, but actually <class 'int'>"),
    ("8, 1, enable_pipeline_infer=2", "Parameter 'enable_pipeline_infer' should be bool, but actually <class 'int'>"),
    ("0, 0", "Parameter 'rank_size' should be >= 1"),
    ("'8', 1", "Parameter 'rank_size' should be int, but actually <class 'str'>"),
    ("8, 0", "Parameter 'stage_size' should be >= 1"),
    ("8, 1, without_batch_dim_inputs=(-1,)", f"The item value '-1' in parameter '{INPUTS}' should be >= 0"),
]
ONE = "distributed.declare_servable(2, 1)\n"
LOCAL = "register.declare_model('a.mindir', 'MindIR')\n"
NONE = "Distributed servable 'add' has not been declared or has been declared more than once"
TWICE = "Raise failed: Declare distributed model failed, servable is repeatedly been declared as distributed servable"


def test_a_declaration(tmp_path: Path) -> None:
    servable = declared(tmp_path, MATMUL, "matmul")
    assert servable.distributed is not None
    declaration = servable.distributed.declaration
    assert (declaration.key, declaration.rank_size, declaration.stage_size) == ("matmul", 8, 2)
    assert not declaration.with_batch_dim
    assert servable.methods["predict"].stages[0].model is servable.distributed


@pytest.mark.parametrize(("arguments", "text"), REFUSED, ids=[text for _, text in REFUSED])
def test_arguments_that_are_refused(tmp_path: Path, arguments: str, text: str) -> None:
    assert refused(tmp_path, f"{DISTRIBUTED}distributed.declare_servable({arguments})") == text


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (ONE + ONE, TWICE),
        (
            LOCAL + ONE,
            "Raise failed: Declare distributed model failed, servable has already been declared as local servable",
        ),
        (ONE + LOCAL, "Raise failed: Declare model failed, servable has already been declared as distributed servable"),
    ],
)
def test_there_is_one_model(tmp_path: Path, lines: str, text: str) -> None:
    assert refused(tmp_path, DISTRIBUTED + lines) == text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            ADD,
            f"{NONE}, declared number: 0",
        ),
        (ADD + LOCAL, "Servable 'add' is not registered as distributed servable"),
        (ONE, "import add.servable_config failed, name 'distributed' is not defined"),
        (DISTRIBUTED + ONE, "Raise failed: There is no method registered for servable"),
        ("raise SystemExit(3)", "import add.servable_config failed, 3"),
        ("import os; os._exit(3)", "import add.servable_config failed, its process ended with 3"),
    ],
    ids=["functions", "local", "raises", "without methods", "exits", "dies"],
)
def test_what_a_start_script_cannot_use(tmp_path: Path, source: str, text: str) -> None:
    write(tmp_path, source)
    with pytest.raises(RuntimeError) as raised:
        read_declared(str(tmp_path), "add")
    assert str(raised.value) == text


@pytest.mark.parametrize("pipelined", [False, True])
def test_what_a_start_script_finds_out(tmp_path: Path, pipelined: bool) -> None:
    """`enable_pipeline_infer` is nothing of it."""
    source = MATMUL.replace("stage_size=2", f"stage_size=2, enable_pipeline_infer={pipelined}")
    write(tmp_path, f"print('a line')\n{source}", "matmul")
    assert read_declared(str(tmp_path), "matmul") == Declared(8, 2)
