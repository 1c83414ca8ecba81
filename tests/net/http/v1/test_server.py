"""uvicorn is used by what it documents: none of its protocols, and nothing of its insides."""

from __future__ import annotations

import re
from pathlib import Path

import msx_net


def test_no_module_imports_the_insides_of_uvicorn() -> None:
    modules = Path(msx_net.__file__).parent.rglob("*.py")
    found = [str(path) for path in modules if re.search(r"(from|import) uvicorn\.", path.read_text())]
    assert found == []
