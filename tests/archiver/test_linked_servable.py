from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from msx_archiver.errors import PackError
from msx_archiver.linked_servable import linked_servable
from msx_archiver.reader import open_archive
from msx_archiver.servable import DEFAULTS


@pytest.fixture
def servable(tmp_path: Path) -> Path:
    folder = tmp_path / "servables" / "add"
    for name in ("servable_config.py", "labels/names.txt", "1/a.mindir", "2/a.mindir", "2/more/b.mindir", ".git/x"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "servable_config.pyc").touch()
    return folder


def linked(target: Path) -> set[str]:
    return {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_symlink()}


def config_of(target: Path) -> Any:
    return yaml.safe_load((target / "model-config.yaml").read_text())


def test_the_files_of_one_version(servable: Path, tmp_path: Path) -> None:
    target = linked_servable(servable, 2, tmp_path / "add-2", {"deviceIds": [0]})
    assert linked(target) == {"servable_config.py", "labels/names.txt", "2/a.mindir", "2/more/b.mindir"}
    assert (target / "2" / "a.mindir").read_text() == "2/a.mindir"
    assert list((target / "1").iterdir()) == [], "other versions are known, and empty"
    assert config_of(target) == {**DEFAULTS, "deviceIds": [0]}
    manifest = (target / "MAR-INF" / "MANIFEST.json").read_text()
    for part in ('"modelName": "add"', '"handler": "servable"', '"modelVersion": "2"'):
        assert part in manifest


def test_it_is_a_model(servable: Path, tmp_path: Path) -> None:
    target = linked_servable(servable, 2, tmp_path / "add-2", {})
    with open_archive(target) as archive:
        assert archive.manifest.model.model_version == "2"
        assert "2/a.mindir" in {member.path for member in archive.members}


def test_without_a_folder_for_the_version(servable: Path, tmp_path: Path) -> None:
    target = linked_servable(servable, 0, tmp_path / "add-1", {})
    assert linked(target) == {"servable_config.py", "labels/names.txt"}
    assert '"modelVersion": "1"' in (target / "MAR-INF" / "MANIFEST.json").read_text()


def test_links_are_followed_once(servable: Path, tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "c.mindir").write_text("elsewhere")
    (servable / "3").symlink_to(tmp_path / "weights")
    (servable / "loop").symlink_to(servable)
    (servable / "gone").symlink_to(tmp_path / "nothing")
    target = linked_servable(servable, 3, tmp_path / "add-3", {})
    assert linked(target) == {"servable_config.py", "labels/names.txt", "3/c.mindir"}
    assert (target / "3" / "c.mindir").read_text() == "elsewhere"


def test_keys_of_its_own(servable: Path, tmp_path: Path) -> None:
    (servable / "model-config.yaml").write_text("responseTimeout: 5\ndeviceIds: [3]\n")
    target = linked_servable(servable, 1, tmp_path / "add-1", {"deviceIds": [0]})
    assert config_of(target) == {**DEFAULTS, "responseTimeout": 5, "deviceIds": [0]}
    (servable / "model-config.yaml").write_text("servable: {decMode: AES-CBC, functionProcesses: 1}")
    target = linked_servable(servable, 1, tmp_path / "sections", {"servable": {"functionProcesses": 4}})
    assert config_of(target)["servable"] == {"decMode": "AES-CBC", "functionProcesses": 4}
    (servable / "model-config.yaml").write_text("- 1")
    with pytest.raises(PackError):
        linked_servable(servable, 1, tmp_path / "again", {})
