"""The snapshot that `model_snapshot` names is read at the start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from msx_frontend.config import ModelDefaults, ServerConfig, Snapshot
from msx_frontend.config.load import load_server_config
from msx_frontend.config.state_folder import state_folder
from msx_frontend.config.surroundings import settle_logs
from msx_frontend.snapshots.named import with_snapshot
from msx_frontend.snapshots.opening import make_serializer
from msx_frontend.snapshots.serializer import SnapshotError

NAME = "20261121093000123-shutdown.cfg"
ONE = 'model_snapshot={"models"\\:{"m"\\:{"1.0"\\:{"marName"\\:"m.mar"}}}}'
MODELS = {"m": {"1.0": ModelDefaults(mar_name="m.mar")}}

Start = Callable[..., ServerConfig]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """The settings of a start with this text of `config.properties`."""
    monkeypatch.chdir(tmp_path)

    def settings(text: str, env: dict[str, str] | None = None, **flags: Any) -> ServerConfig:
        (tmp_path / "ts.properties").write_text(text)
        env = dict(env or {})
        config, _ = load_server_config(flags, tmp_path / "ts.properties", env)
        settle_logs(env, state_folder(config))
        return with_snapshot(config, make_serializer(env, None, {}))

    return settings


def last_snapshot(folder: Path, text: str) -> None:
    (folder / "logs" / "config").mkdir(parents=True)
    (folder / "logs" / "config" / NAME).write_text(text)


@pytest.mark.parametrize("name", [NAME, "last"])
def test_its_models_count_and_its_settings_do_not(start: Start, tmp_path: Path, name: str) -> None:
    last_snapshot(tmp_path, f"job_queue_size=4\n{ONE}")
    config = start(f"model_snapshot= {name}\nload_models=all")
    assert (config.job_queue_size, config.load_models) == (100, ())
    assert config.model_snapshot == Snapshot(MODELS, last_known=name == "last")


def test_as_the_configuration_it_counts_as_a_whole(start: Start) -> None:
    config = start(f"job_queue_size=4\nload_models=all\n{ONE}")
    assert (config.job_queue_size, config.load_models) == (4, ())
    assert config.model_snapshot == Snapshot(MODELS)


def test_none_is_read_that_is_not_named(start: Start, tmp_path: Path) -> None:
    """TorchServe takes its settings, too, from its last snapshot."""
    last_snapshot(tmp_path, f"job_queue_size=4\n{ONE}")
    config = start("job_queue_size=1")
    assert (config.job_queue_size, config.model_snapshot) == (1, None)


def test_the_last_snapshot_where_there_is_none(start: Start) -> None:
    config = start("model_snapshot=last\nload_models=all")
    assert (config.model_snapshot, config.load_models) == (None, ("all",))
    config = start("model_snapshot=last\nload_models=all", load_models=("a.mar",))
    assert (config.model_snapshot, config.load_models) == (None, ("a.mar",))


def test_it_lies_in_log_location(start: Start, tmp_path: Path) -> None:
    last_snapshot(tmp_path / "elsewhere", ONE)
    env = {"LOG_LOCATION": str(tmp_path / "elsewhere" / "logs")}
    assert start(f"model_snapshot={NAME}", env).model_snapshot == Snapshot(MODELS)


def test_it_lies_in_the_state_folder_where_the_current_folder_cannot_be_written(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last_snapshot(tmp_path / "state", ONE)
    text = "model_snapshot=last\nstate_dir=/elsewhere"
    monkeypatch.chdir("/proc/self")
    last = Snapshot(MODELS, last_known=True)
    assert start(text, state_dir=tmp_path / "state").model_snapshot == last
    assert start(text, {"MSX_STATE_DIR": str(tmp_path / "state")}).model_snapshot == last
    assert start(text).model_snapshot is None


def test_one_that_cannot_be_used(start: Start, tmp_path: Path) -> None:
    last_snapshot(tmp_path, "job_queue_size=4")
    with pytest.raises(SnapshotError, match=f"^model_snapshot=last: the models of {NAME} cannot be read: "):
        start("model_snapshot=last")
    with pytest.raises(SnapshotError, match=r"^logs/config/gone.cfg: cannot be read: .*; name another one by model_sn"):
        start("model_snapshot=gone.cfg")
