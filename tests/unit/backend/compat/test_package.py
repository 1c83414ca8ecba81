from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from msx_backend import compat

PROGRAM = """
import sys
from msx_backend import compat
compat.offer()
compat.offer()
import ts
print(ts.__file__)
print(sys.path[-1])
print([name for name in ("torch", "numpy", "PIL", "transformers", "mindspore") if name in sys.modules])
import ts.torch_handler.image_classifier, ts.torch_handler.text_classifier, ts.torch_handler.object_detector
print([name for name in ("torch", "numpy", "PIL", "transformers", "mindspore") if name in sys.modules])
"""


def run(program: str, *folders: str) -> list[str]:
    code = f"import sys\nsys.path[:0] = {folders!r}\n{program}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split("\n")


def test_offered_once_last_and_without_heavy_imports() -> None:
    file, last, early, late = run(PROGRAM)[:4]
    folder = Path(compat.__file__).parent
    assert Path(file) == folder / "ts" / "__init__.py"
    assert Path(last) == folder
    assert early == late == "[]"


def test_another_ts_wins(tmp_path: Path) -> None:
    (tmp_path / "ts.py").write_text("mine = True")
    program = "from msx_backend import compat\ncompat.offer()\nimport ts\nprint(ts.mine)"
    assert run(program, str(tmp_path))[0] == "True"


@pytest.mark.parametrize(
    ("handler", "serialized", "expected"),
    [
        ("image_classifier", "model.pt", "ts.torch_handler.image_classifier"),
        ("image_classifier", "model.onnx", "ts.torch_handler.image_classifier"),
        ("image_classifier", "model.mindir", "image_classifier"),
        ("image_classifier", None, "image_classifier"),
        ("object_detector", "model.pt", "object_detector"),
        ("h.py:f", "model.pt", "h.py:f"),
    ],
)
def test_a_default_handler_by_the_model_it_is_for(handler: str, serialized: str | None, expected: str) -> None:
    assert compat.default_handler(handler, {"model": {"serializedFile": serialized}}) == expected
