"""Names of shared memory that is removed after a worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_frontend.workers import shared_files

NAMES = ("psm_1d5436db", "sem.mp-_aal_kdt", "vllm_dist_d765139c-tp:0-[0-1]-cpushm_0", "nccl-Ab12Cd", "another-programs")


def test_what_multiprocessing_and_the_collectives_of_engines_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shm"
    shared.mkdir()
    for name in (*NAMES, "psm_of_others"):
        (shared / name).touch()
    lines = [f"7f00-7f01 rw-s 00000000 00:19 {(shared / name).stat().st_ino}    /dev/shm/{name}" for name in NAMES]
    for pid in ("7", "8"):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "maps").write_text(
            "\n".join([*lines, "7f06-7f07 r-xp 00000000 08:01 17    /usr/lib/libc.so"])
        )
    monkeypatch.setattr(shared_files, "PROC", tmp_path)
    monkeypatch.setattr(shared_files, "SHARED", shared)
    monkeypatch.setattr(shared_files, "processes_of", lambda session: [7, 8])
    assert {file.name for file in shared_files.shared_files(7)} == set(NAMES) - {"another-programs"}


def test_files_that_are_gone_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker may make and remove any number of them in a long life."""
    kept, gone, new = (tmp_path / name for name in ("psm_1", "psm_2", "psm_3"))
    kept.touch()
    monkeypatch.setattr(shared_files, "shared_files", lambda session: {new})
    assert shared_files.noted(7, {kept, gone}) == {kept, new}
