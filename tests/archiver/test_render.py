from __future__ import annotations

import pytest

from msx_archiver.inspection import GraphReport, InspectionReport, TensorReport
from msx_archiver.render import render


@pytest.mark.parametrize(
    ("shape", "shown"), [([2, 3], "[2, 3]"), ([-1, 3], "[?, 3]"), ([-2], "[...]"), ([], "[]"), ([-1], "[?]")]
)
def test_a_shape_shows_which_sizes_are_dynamic(
    capsys: pytest.CaptureFixture[str], shape: list[int], shown: str
) -> None:
    graph = GraphReport("m.mindir", [TensorReport("x", "float32", "FP32", shape)], [], ["MatMul"], "MindSpore 2")
    render(report(graph))
    assert f"  input   x: float32{shown}\n" in capsys.readouterr().out


def report(graph: GraphReport) -> InspectionReport:
    manifest = {"model": {"modelName": "m", "modelVersion": "1.0"}}
    return InspectionReport(
        path="m.mar",
        format="zip",
        archive_size=0,
        unpacked_size=10,
        manifest=manifest,
        files=[],
        graphs=[graph],
        config=None,
        warnings=[],
    )
