"""Cores of workers and their ranks on a CPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from msx_vllm import cores
from msx_vllm.cores import BIND, THREADS, UNBOUND, WorkerShare, physical_cores, thread_binding


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Eight cores of a topology that is not known, and no quota."""
    return of(monkeypatch, tmp_path, range(8))


def of(monkeypatch: pytest.MonkeyPatch, folder: Path, usable: Sequence[int], quota: int | None = None) -> Path:
    monkeypatch.setattr(cores, "_usable", lambda: usable)
    monkeypatch.setattr(cores, "cores_by_quota", lambda: quota)
    monkeypatch.setattr(cores, "CPUS", folder)
    return folder


def test_vllm_binds_the_only_rank_of_a_machine(machine: Path) -> None:
    assert thread_binding(WorkerShare(0, 1, 1), {}) == {}


def test_each_worker_has_its_own_cores_and_each_of_its_ranks(machine: Path) -> None:
    """One of several is left to the processes that do not compute."""
    assert [thread_binding(WorkerShare(place, 2, 1), {})[BIND] for place in range(3)] == ["0,1,2", "4,5,6", "0,1,2"]
    assert thread_binding(WorkerShare(0, 1, 2), {}) == {BIND: "0,1,2|4,5,6"}
    assert thread_binding(WorkerShare(1, 2, 2), {}) == {BIND: "4|6"}
    assert thread_binding(WorkerShare(1, 4, 2), {}) == {BIND: "2|3"}


def test_fewer_cores_than_ranks_are_shared(machine: Path) -> None:
    assert thread_binding(WorkerShare(0, 9, 1), {}) == {BIND: UNBOUND, THREADS: "1"}


def test_models_that_share_the_cores_are_not_bound(machine: Path) -> None:
    """Nor workers beyond those that the model's own keys tell of."""
    assert thread_binding(WorkerShare(0, 1, 1, on_host=3), {}) == {BIND: UNBOUND, THREADS: "2"}
    assert thread_binding(WorkerShare(1, 2, 1, on_host=9), {}) == {BIND: UNBOUND, THREADS: "1"}
    assert thread_binding(WorkerShare(0, 2, 1, on_host=2), {}) == {BIND: "0,1,2"}
    assert thread_binding(WorkerShare(0, 1, 1, on_host=1), {}) == {}


def test_a_quota_counts_threads_and_binds_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    of(monkeypatch, tmp_path, range(8), quota=4)
    assert thread_binding(WorkerShare(0, 2, 1), {THREADS: "4"}) == {BIND: UNBOUND, THREADS: "2"}
    assert thread_binding(WorkerShare(0, 8, 1), {}) == {BIND: UNBOUND, THREADS: "1"}
    assert thread_binding(WorkerShare(0, 1, 1, on_host=2), {}) == {BIND: UNBOUND, THREADS: "2"}


def test_the_operator_says_it(machine: Path) -> None:
    assert thread_binding(WorkerShare(0, 2, 1), {BIND: "5"}) == {}


def test_a_core_of_two_threads_counts_once_and_sockets_stay_together(tmp_path: Path) -> None:
    for cpu, place in enumerate([(0, 0), (1, 0), (0, 1), (1, 1), (0, 0), (1, 0), (0, 1), (1, 1)]):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        for name, number in zip(("physical_package_id", "core_id"), place, strict=True):
            (folder / name).write_text(f"{number}\n")
    assert physical_cores(range(8), tmp_path) == [4, 6, 5, 7]
