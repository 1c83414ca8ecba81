from datetime import datetime
from pathlib import Path

import pytest

from msx_frontend.snapshots.files import SnapshotFiles, snapshot_name, unread
from msx_frontend.snapshots.opening import make_serializer
from msx_frontend.snapshots.serializer import SavedSnapshot, SnapshotError

NAME = "20261121093000123-startup.cfg"


def test_the_name_is_a_local_time_stamp_and_the_kind() -> None:
    assert snapshot_name("startup", datetime(2026, 11, 21, 9, 30, 0, 123_987)) == NAME


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    files = SnapshotFiles(tmp_path / "logs" / "config")
    snapshot = SavedSnapshot(NAME, {"a": "b:c=d", "model_snapshot": '{\n  "models": {}\n}', "ü": " é\\"})
    files.save(snapshot)
    assert files.get(NAME) == snapshot
    path = tmp_path / "logs" / "config" / NAME
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == [NAME], "nothing half-written is left"


def test_one_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    files = SnapshotFiles(tmp_path)
    files.save(SavedSnapshot(NAME, {"a": "1"}))
    files.save(SavedSnapshot(NAME, {"a": "2"}))
    assert files.get(NAME).properties == {"a": "1"}


def test_the_last_is_the_newest_by_its_stamp(tmp_path: Path) -> None:
    files = SnapshotFiles(tmp_path)
    assert files.get_last() is None
    for name in ("20261121093000123-shutdown.cfg", "20261121093000124-a.cfg", "20250101000000999-startup.cfg"):
        files.save(SavedSnapshot(name, {"name": name}))
    for other in ("99999999999999999-x.cfg", "notes.txt", "mine.cfg", "20991121-x.cfg", "20991121093000123-x.bak"):
        (tmp_path / other).write_text("name=wrong")
    last = files.get_last()
    assert last is not None
    assert last.name == last.properties["name"] == "20261121093000124-a.cfg"


def test_a_missing_folder_has_no_snapshot(tmp_path: Path) -> None:
    assert SnapshotFiles(tmp_path / "none").get_last() is None


def test_a_server_that_remembers_nothing_names_what_it_does_not_read(tmp_path: Path) -> None:
    files = SnapshotFiles(tmp_path)
    assert unread(files) == unread(None) == ""
    files.save(SavedSnapshot(NAME, {"a": "1"}))
    path = tmp_path / NAME
    assert unread(files) == f"{path} is a snapshot and was not read: --ts-config {path} starts from it."


def test_a_damaged_one_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("a=\\u12")
    with pytest.raises(SnapshotError, match=rf"{NAME}: line 1: .*start with --ncs"):
        SnapshotFiles(tmp_path).get_last()


def test_where_they_are(tmp_path: Path) -> None:
    for env, folder in (({}, "logs/config"), ({"LOG_LOCATION": str(tmp_path)}, f"{tmp_path}/config")):
        files = make_serializer(env, None, {})
        assert isinstance(files, SnapshotFiles)
        assert str(files.folder) == folder
