from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from msx_frontend.logs import output
from msx_frontend.logs.log_files import add_log_files
from msx_frontend.logs.rotating import RotatingFile


@pytest.fixture(autouse=True)
def restored_logging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    files = []

    def add(folder: Path) -> RotatingFile:
        files.append(add_log_files(folder))
        return files[-1]

    monkeypatch.setattr(output, "add_log_files", add)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:], root.level = handlers, level
    for file in files:
        file.close()
    access = logging.getLogger("msx.access")
    for handler in access.handlers:
        handler.close()
    access.handlers[:], access.level, access.propagate = [], logging.NOTSET, True
