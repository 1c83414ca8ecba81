from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:], root.level = handlers, level
    access = logging.getLogger("msx.access")
    for handler in access.handlers:
        handler.close()
    access.handlers[:], access.level, access.propagate = [], logging.NOTSET, True
