"""The handler of docs/mindspore-models.md runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backend.handlers.conftest import Serve
from tests.pages import ROOT, files

pytestmark = pytest.mark.mindspore


def test_the_handler_of_the_page(serve: Serve, nets: Path) -> None:
    (nets / "doubler.py").write_text(files((ROOT / "docs" / "mindspore-models.md").read_text())["doubler.py"])
    model = serve("doubler.py", "single.mindir")
    good, bad, other = model.predict([[1, 2, 3], "three", [4, 5, 6]])
    assert (good.json(), other.json()) == ([4, 8, 12], [16, 20, 24])
    assert bad.status == 400
    assert bad.failure is not None
    assert "send a JSON list of numbers" in bad.failure.message
