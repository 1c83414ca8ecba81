"""Phase of a download while it runs."""

from __future__ import annotations

import pytest

from msx_frontend.archives.fetches import Fetches


@pytest.mark.parametrize(
    ("done", "size", "phase"),
    [
        (0, 0, "fetching https://h/m.mar"),
        (0, 2048, "fetching https://h/m.mar"),
        (1024, 2048, "fetching https://h/m.mar: 1.0 KiB of 2.0 KiB"),
        (1024, 0, "fetching https://h/m.mar: 1.0 KiB"),
        (2048, 2048, "fetching https://h/m.mar: 2.0 KiB"),
    ],
)
def test_phase(done: int, size: int, phase: str) -> None:
    fetches = Fetches()
    with fetches.of("m", "https://h/m.mar") as fetch:
        fetch.come(done, size)
        found = fetches.find("m")
        assert found is fetch
        assert found.phase == phase
        assert fetches.find("other") is None
    assert fetches.find("m") is None
