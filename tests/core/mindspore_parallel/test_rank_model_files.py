"""Which files a rank of a distributed servable loads."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_core.mindspore import rank_models
from msx_core.mindspore.rank_models import load_rank_model
from msx_sdk.context import Context, ModelInfo
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore import Parallel


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Files in the order in which they were loaded, the groups first."""
    files: list[Path] = []
    monkeypatch.setattr(rank_models, "join_group_files", lambda groups, _parallel: files.extend(groups))
    monkeypatch.setattr(rank_models, "load_mindir_file", lambda file, _context, _key: files.append(file))
    monkeypatch.setattr(rank_models, "RankModel", lambda _parallel, networks, *_: networks)
    return files


def load(folder: Path, parallel: Parallel, rank_size: int = 2, stage_size: int = 1) -> None:
    load_rank_model(Context(ModelInfo("matmul", "3", model_dir=folder)), parallel, rank_size, stage_size)


def test_the_archive_has_a_folder_a_rank(tmp_path: Path, loaded: list[Path]) -> None:
    names = ["device0/a.mindir", "device0/group_config.pb", "device1/b.mindir", "device1/a.mindir", "group_config.pb"]
    for name in names:
        file = tmp_path / "3" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    load(tmp_path, Parallel(0, 1, 2))
    load(tmp_path, Parallel(1, 1, 2))
    assert [str(file.relative_to(tmp_path / "3")) for file in loaded] == [
        "device0/group_config.pb",
        "device0/a.mindir",
        "group_config.pb",
        "device1/a.mindir",
        "device1/b.mindir",
    ]


def test_a_rank_without_files(tmp_path: Path, loaded: list[Path]) -> None:
    with pytest.raises(
        HandlerLoadError, match=r"no MindIR for rank 1: put it into 3/device1/ of the servable's folder"
    ):
        load(tmp_path, Parallel(1, 1, 2))
    assert not loaded


@pytest.mark.parametrize(
    ("ranks", "stages", "remedy"),
    [
        (4, 1, "parallelType: tp and msrun: {nproc-per-node: 4}"),
        (2, 2, "parallelType: pp and msrun: {nproc-per-node: 2}"),
        (4, 2, "parallelType: pptp, parallel: {pipelineStages: 2, tensorParallel: 2} and msrun: {nproc-per-node: 4}"),
    ],
)
def test_a_group_of_another_size_than_declared(tmp_path: Path, ranks: int, stages: int, remedy: str) -> None:
    with pytest.raises(HandlerLoadError) as raised:
        load(tmp_path, Parallel(0, 1, 2), ranks, stages)
    assert str(raised.value) == (
        f"servable 'matmul' declares {ranks} ranks in {stages} stages, and its group has 2 in 1: give {remedy} in "
        "model-config.yaml"
    )
