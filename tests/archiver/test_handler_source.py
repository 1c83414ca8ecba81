from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from msx_archiver import handler_source
from msx_archiver.handler_source import source_of
from msx_archiver.python_files import ENTRY_POINTS, HandlerFile


@pytest.mark.parametrize("module", ["package_that_is_not_here.handler", "not_here"])
def test_a_handler_whose_package_is_not_here_has_no_source(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """A machine that packs needs not what serves."""
    found = [EntryPoint("theirs", module, ENTRY_POINTS)]
    monkeypatch.setattr(handler_source, "entry_points", lambda **wanted: found)
    assert source_of(HandlerFile("theirs")) is None
