from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from msx_archiver.cli import main
from msx_archiver.errors import PackError
from msx_archiver.reader import open_archive
from msx_archiver.servable import pack_servable, servable_versions
from tests.archiver.conftest import tree, write_folder

CONFIG = "from mindspore_serving.server import register\n"


def servable(root: Path, *names: str) -> Path:
    """A folder `add` with a configuration and these files."""
    folder = root / "add"
    for name in ("servable_config.py", *names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CONFIG if name.endswith("config.py") else "")
    return folder


def read(archive: Path) -> tuple[list[str], dict[str, Any], dict[str, Any]]:
    """Its files, the manifest's model and the yaml."""
    with open_archive(archive) as opened:
        manifest = json.loads(opened.read("MAR-INF/MANIFEST.json"))
        files = sorted(manifest["files"])
        return files, manifest["model"], yaml.safe_load(opened.read("model-config.yaml"))


def test_each_version_is_an_archive(tmp_path: Path) -> None:
    names = "labels.txt nets/__init__.py v1/x 1/a.mindir 002/a.mindir 002/sub/b.mindir __pycache__/x.pyc .hidden/x"
    folder = servable(tmp_path, *names.split())
    assert servable_versions(folder) == [1, 2]
    files, model, config = read(pack_servable(folder, None, tmp_path / "out"))
    assert files == ["2/a.mindir", "2/sub/b.mindir", "labels.txt", "model-config.yaml", "nets/__init__.py",
                     "servable_config.py", "v1/x"]  # fmt: skip
    assert model == {
        "modelName": "add", "handler": "servable", "modelVersion": "2", "configFile": "model-config.yaml"
    }  # fmt: skip
    assert config == {"jobQueueSize": 10_000, "batchSize": 32, "maxBatchDelay": 0}
    assert "1/a.mindir" in read(pack_servable(folder, 1, tmp_path / "out"))[0]
    assert sorted(tree(tmp_path / "out")) == ["add-1.mar", "add-2.mar"]


def test_the_servables_own_yaml_and_requirements(tmp_path: Path) -> None:
    folder = servable(tmp_path, "requirements.txt")
    (folder / "model-config.yaml").write_text("batchSize: 4\njobQueueSize: 7\n")
    _, model, config = read(pack_servable(folder, None, tmp_path, config={"batchSize": 8}))
    assert config == {"jobQueueSize": 7, "batchSize": 8, "maxBatchDelay": 0}
    assert (model["requirementsFile"], model["modelVersion"]) == ("requirements.txt", "1")


def test_a_version_that_no_folder_has(tmp_path: Path) -> None:
    assert pack_servable(servable(tmp_path), 7, tmp_path).name == "add-7.mar"
    folder = servable(tmp_path, "1/a", "3/a", "12/a")
    with pytest.raises(PackError) as caught:
        pack_servable(folder, 2, tmp_path)
    assert str(caught.value) == f"The servable {folder} has no version 2; its versions are 1, 3 and 12."


def test_a_file_that_hides_a_module_is_warned_of(tmp_path: Path) -> None:
    told: list[str] = []
    pack_servable(servable(tmp_path, "types.py", "1/queue.py"), 1, tmp_path, warn=told.append)
    assert [sentence.partition(",")[0] for sentence in told] == [
        "--servable: types.py has the name of Python's module types"
    ]


def test_what_is_refused(tmp_path: Path) -> None:
    folder = servable(tmp_path, "1/a", "01/a")
    cases = [
        (tmp_path / "absent", "is not a folder."),
        (write_folder(tmp_path / "empty", {"x": b""}), "has no servable_config.py, so that it is not a servable."),
        (folder, "are the same version; remove one of them."),
    ]
    for given, words in cases:
        with pytest.raises(PackError, match=words):
            pack_servable(given, None, tmp_path / "out")
    (folder / "01" / "a").unlink()
    (folder / "01").rmdir()
    for name, target, words in [
        ("1/secret", "/etc/hostname", "is a link that leads out of the servable; put what it leads to in its place."),
        ("nets", "1", "is a link to a folder; put what it leads to in its place."),
    ]:
        (folder / name).symlink_to(target)
        with pytest.raises(PackError, match=words):
            pack_servable(folder, None, tmp_path / "out")
        (folder / name).unlink()
    (folder / "model-config.yaml").write_text("batchSize: none")
    with pytest.raises(PackError, match="batchSize"):
        pack_servable(folder, None, tmp_path / "out")
    (folder / "servable_config.py").write_text("def (")
    with pytest.raises(PackError, match="line 1"):
        pack_servable(folder, None, tmp_path / "out")
    with pytest.raises(PackError, match="Model name contains special characters"):
        pack_servable(folder.rename(tmp_path / "a b"), None, tmp_path / "out")
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_the_command(tmp_path: Path) -> None:
    folder = servable(tmp_path, "1/a", "2/a")
    run = [f"--servable={folder}", f"--export-path={tmp_path}"]
    runner = CliRunner()
    assert runner.invoke(main, run).stdout == f"{tmp_path}/add-1.mar\n{tmp_path}/add-2.mar\n"
    assert "already exists" in runner.invoke(main, [*run, "--version", "2"]).stderr
    assert runner.invoke(main, [*run, "--version", "2", "--force"]).stdout == f"{tmp_path}/add-2.mar\n"
    to = [f"--servable={folder}", "-o", f"{tmp_path}/new.mar"]
    assert runner.invoke(main, [*to, "--version", "2"]).stdout == f"{tmp_path}/new.mar\n"
    assert "-o names one file, and " in runner.invoke(main, to).stderr
    refused = runner.invoke(main, [*run, "--handler", "h.py"])
    assert "--handler has no effect with --servable: the folder says all of it. Leave it out." in refused.stderr
    refused = runner.invoke(main, [*run, "--version", "1.0"])
    assert "--version '1.0' is not a number, as the versions of a servable are." in refused.stderr
