from __future__ import annotations

import pytest

from tests.contract.runs import make_environment


@pytest.fixture(scope="session")
def python() -> str:
    """Interpreter of the clients' environment."""
    return make_environment()
