"""How the process that fetches a model ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from msx_frontend.archives.hub import fetch_process
from msx_frontend.archives.hub.fetch_process import NotFetchedError, fetch
from tests.frontend.archives.hub.test_sources import environment
from tests.loops import run

ANSWER = 'print(\'{"id": "x", "revision": "y"}\', flush=True)'
FAILS = 'print(\'{"error": "no room"}\', flush=True)'
STAYS = "import time; time.sleep(600)"


@pytest.fixture
def codes(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """With which each process had ended before it was to be killed; None: it still ran."""
    found: list[int | None] = []
    ended = fetch_process._ended

    async def recorded(process: asyncio.subprocess.Process) -> None:
        found.append(process.returncode)
        await ended(process)

    monkeypatch.setattr(fetch_process, "_ended", recorded)
    return found


def fetched(monkeypatch: pytest.MonkeyPatch, folder: Path, *lines: str, limit: float = 60.0) -> tuple[str, str]:
    (folder / "msx_fetches.py").write_text("\n".join(lines))
    monkeypatch.setattr(fetch_process, "_PROCESS", "msx_fetches")
    env = environment(folder, PYTHONPATH=str(folder))
    return run(fetch("hf://a/b", folder, 1, limit, lambda done, size: None, env, allowed=[]))


def test_it_ends_by_itself_once_it_has_answered(
    codes: list[int | None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert fetched(monkeypatch, tmp_path, ANSWER) == ("x", "y")
    with pytest.raises(NotFetchedError, match="no room"):
        fetched(monkeypatch, tmp_path, FAILS)
    assert codes == [0, 0]


def test_one_that_stays_is_killed_and_its_answer_counts(
    codes: list[int | None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(fetch_process, "LEAVES", 0.1)
    assert fetched(monkeypatch, tmp_path, ANSWER, STAYS) == ("x", "y")
    assert codes == [None]


def test_one_that_does_not_answer_is_killed(
    codes: list[int | None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(NotFetchedError, match=r"longer than download_timeout, 0\.1 s"):
        fetched(monkeypatch, tmp_path, STAYS, limit=0.1)
    assert codes == [None]
