"""Who gets which folder for compiled graphs, and what is left in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from msx_core.mindspore import graph_cache
from msx_core.mindspore.graph_cache import compiling, loaded, take_folder


@pytest.fixture(autouse=True)
def a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(graph_cache._TakenFolder, "folder", None)
    monkeypatch.setattr(graph_cache._TakenFolder, "lock", None)
    yield
    end_process()


def end_process() -> None:
    """Its locks go with it."""
    if graph_cache._TakenFolder.lock is not None:
        os.close(graph_cache._TakenFolder.lock)
    graph_cache._TakenFolder.folder = graph_cache._TakenFolder.lock = None


def taken(base: Path, rank: int = 0, *key: str) -> Path:
    folder = take_folder(base, rank, *key)
    assert folder is not None
    return folder


def test_the_next_worker_finds_what_a_loaded_one_has_left(tmp_path: Path) -> None:
    first = taken(tmp_path, 0, "2.10", "a")
    (first / "graph").touch()
    loaded()
    end_process()
    assert taken(tmp_path, 0, "2.10", "a") == first
    assert [path.name for path in first.iterdir()] == ["graph"]


def test_what_a_load_that_did_not_end_has_left_is_thrown_away(tmp_path: Path) -> None:
    first = taken(tmp_path)
    (first / "half a graph").touch()
    end_process()
    assert list(taken(tmp_path).iterdir()) == []


def test_a_load_that_fails_on_kept_graphs_starts_anew_the_next_time(tmp_path: Path) -> None:
    (taken(tmp_path) / "graph that does not fit").touch()
    loaded()
    end_process()
    assert len(list(taken(tmp_path).iterdir())) == 1  # and this load fails
    end_process()
    assert list(taken(tmp_path).iterdir()) == []


def test_two_workers_of_a_model_have_a_folder_each(tmp_path: Path) -> None:
    first = taken(tmp_path)
    lock, graph_cache._TakenFolder.lock = graph_cache._TakenFolder.lock, None  # another process's
    assert taken(tmp_path) != first
    assert lock is not None
    os.close(lock)


def test_a_worker_that_comes_to_know_more_takes_another_folder(tmp_path: Path) -> None:
    first = taken(tmp_path, 0, "a")
    second = taken(tmp_path, 0, "a", "limits")
    assert second.parent.parent != first.parent.parent
    loaded()
    lock, graph_cache._TakenFolder.lock = graph_cache._TakenFolder.lock, None
    assert taken(tmp_path, 0, "a") == first  # no process holds it any more
    assert lock is not None
    os.close(lock)
    assert taken(tmp_path, 0, "a", "limits") == second


def started(base: Path, key: str) -> list[str]:
    """A load whose second graph depends on `key`; returns those that it has found."""
    folder = taken(base)
    found = sorted(path.name for path in folder.iterdir())
    (folder / "trial").touch()
    graph_cache.settle(key)
    (folder / f"graph of {key}").touch()
    loaded()
    end_process()
    return found


def test_graphs_of_what_is_known_only_after_the_first_one(tmp_path: Path) -> None:
    whole = ["graph of a", "key", "trial"]
    assert [started(tmp_path, "a") for _ in range(3)] == [[], whole, whole]
    assert started(tmp_path, "b") == whole
    assert started(tmp_path, "b") == ["graph of b", "key"]
    assert started(tmp_path, "b") == ["graph of b", "key", "trial"]


def test_without_a_folder_nothing_is_thrown_away() -> None:
    graph_cache.settle("limits")


GRAPHS = """
import sys, numpy as np, mindspore as ms
from pathlib import Path
from mindspore import Tensor, nn, ops
from msx_core.mindspore import graph_cache

class Net(nn.Cell):
    def __init__(self, number):
        super().__init__()
        self.number = number

    def construct(self, x):
        return ops.sin(x) + self.number

def compute(number):
    net = Net(number)
    net.set_inputs(Tensor(shape=[None], dtype=ms.float32))
    return ms.jit(function=net, jit_level="O0")(Tensor(np.zeros(1, np.float32))).asnumpy()[0]

base, last = Path(sys.argv[1]), float(sys.argv[2])
for key in ("sources", "sources of the trial"):
    ms.set_context(enable_compile_cache=True, compile_cache_path=str(graph_cache.take_folder(base, 0, key)))
first = compute(1.0)
graph_cache.settle(sys.argv[2])
print(first, compute(last))
graph_cache.loaded()
"""


@pytest.mark.mindspore
def test_mindspore_stays_with_the_folder_of_its_first_graph(tmp_path: Path) -> None:
    pytest.importorskip("mindspore")
    (program := tmp_path / "graphs.py").write_text(GRAPHS)  # its compiler reads sources

    def start(number: str) -> dict[Path, int]:
        command = [sys.executable, str(program), str(tmp_path), number]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        assert done.stdout == f"1.0 {number}\n", done.stderr
        return {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.mindir")}

    first, again, other = start("2.0"), start("2.0"), start("3.0")
    assert len(first) == 2
    assert again == first
    assert len(other) == 1


@pytest.mark.parametrize("other", [(1, "a", "b"), (0, "a", "c"), (0, "ab", "")])
def test_what_is_compiled_differently_is_kept_apart(tmp_path: Path, other: tuple[int, str, str]) -> None:
    first = taken(tmp_path, 0, "a", "b")
    end_process()
    assert taken(tmp_path, *other) != first


def test_too_many_workers_compile_for_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(graph_cache, "MOST_AT_ONCE", 1)
    taken(tmp_path)
    assert take_folder(tmp_path, 0) is None
    assert "graphs are not kept: 1 workers have the same model" in caplog.text


def test_without_a_folder_nothing_is_marked() -> None:
    loaded()


def another(base: Path) -> int:
    """Another process has loaded the model, and runs; returns its lock."""
    (taken(base) / "graph_0.mindir").write_text("graph")
    loaded()
    lock, graph_cache._TakenFolder.lock = graph_cache._TakenFolder.lock, None
    assert lock is not None
    return lock


def test_a_worker_begins_with_what_another_one_has_compiled(tmp_path: Path) -> None:
    lock = another(tmp_path)
    second = taken(tmp_path)
    assert (second / "graph_0.mindir").read_text() == "graph"
    end_process()
    assert list(taken(tmp_path).iterdir()) == [], "its load has failed, perhaps by them"
    assert list(taken(tmp_path, 1).iterdir()) == [], "those of another rank are other graphs"
    os.close(lock)


def test_what_another_worker_compiles_after_its_load_may_be_half_written(tmp_path: Path) -> None:
    lock = another(tmp_path)
    folder = next(tmp_path.rglob("graph_0.mindir")).parent
    (folder / "graph_1.mindir").write_text("half")
    os.utime(folder / "graph_1.mindir", ns=(2**62, 2**62))
    assert list(taken(tmp_path).iterdir()) == []
    os.close(lock)


def test_what_changes_while_it_is_copied_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = another(tmp_path)
    copytree = shutil.copytree

    def slowly(source: Path, target: Path) -> None:
        copytree(source, target)
        (source / "graph_0.mindir").write_text("another")

    monkeypatch.setattr(shutil, "copytree", slowly)
    assert list(taken(tmp_path).iterdir()) == []
    os.close(lock)


def test_a_worker_that_ends_while_it_compiles_behind_traffic_leaves_nothing(tmp_path: Path) -> None:
    first = taken(tmp_path)
    (first / "graph").touch()
    with compiling():
        (first / "half a graph").touch()
        loaded()  # the worker became ready meanwhile
        end_process()
        assert list(taken(tmp_path).iterdir()) == []


def test_graphs_that_were_compiled_behind_traffic_are_kept(tmp_path: Path) -> None:
    first = taken(tmp_path)
    loaded()
    with compiling():
        (first / "graph").touch()
    end_process()
    assert [path.name for path in taken(tmp_path).iterdir()] == ["graph"]
