"""The server's API families as keys of the configuration say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from msx_frontend.apis.openai.kept_responses import KeptResponses
from msx_frontend.config import ServerConfig
from msx_frontend.store.store import Store
from tests.frontend.front import front_of
from tests.frontend.harness import open_harness
from tests.loops import run


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store.db")
    yield made
    made.close()


@pytest.mark.parametrize("enabled", [True, False])
def test_the_console_can_be_switched_off(tmp_path: Path, enabled: bool) -> None:
    async def test() -> None:
        async with open_harness(tmp_path, enable_console=enabled) as harness:
            paths = {route.path for family in front_of(harness).families for route in family.routes}
        assert any(path.startswith("/console") for path in paths) == enabled

    run(test())


def test_responses_are_kept_as_their_keys_say(store: Store) -> None:
    assert KeptResponses.of(ServerConfig(), store) is None
    kept = KeptResponses.of(
        ServerConfig(responses_store=True, responses_store_days=2.0, responses_store_size=99), store
    )
    assert kept is not None
    assert (kept._days, kept._bounds.size) == (2.0, 99)
