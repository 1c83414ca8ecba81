"""Files and batches as the keys of the configuration bound them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from msx_frontend.assembly import late_work
from msx_frontend.config import ServerConfig
from msx_frontend.files.shelf import ShelfLimits

KEYS: dict[str, Any] = {
    "batch_share": 0.25,
    "max_batch_lines": 11,
    "max_batches": 12,
    "files_days": 2.0,
    "files_size": 13,
    "max_files": 14,
    "max_file_size": 15,
}


@pytest.mark.parametrize("jobs", [True, False])
def test_files_and_batches_are_bounded_by_their_keys(monkeypatch: pytest.MonkeyPatch, jobs: bool) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(late_work, "BatchBook", lambda store, *bounds: given.update(book=bounds))
    monkeypatch.setattr(late_work, "FileShelf", lambda store, folder, limits: given.update(shelf=limits))
    monkeypatch.setattr(late_work, "LineTurns", lambda rooms, share: given.update(share=share))
    monkeypatch.setattr(late_work, "Batches", lambda *parts, lines, **more: given.update(lines=lines))
    monkeypatch.setattr(late_work, "deferred_jobs", lambda *parts: None)
    context = SimpleNamespace(
        config=ServerConfig(jobs=jobs, **KEYS),
        store=object(),
        keys=SimpleNamespace(tokens=None),
        folder=SimpleNamespace(files=Path("/files")),
        registry=None,
    )
    late_work.LateWork.of(cast(Any, context))
    expected = {"book": (12, 2.0), "shelf": ShelfLimits(15, 14, 13, 2.0), "share": 0.25, "lines": 11}
    assert given == (expected if jobs else {})
