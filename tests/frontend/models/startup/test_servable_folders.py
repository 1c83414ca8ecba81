from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from msx_archiver.reader import open_archive
from msx_frontend.models.startup.servable_folders import PackedServables, ServablesError, packed_servables

CONFIG = """
from mindspore_serving.server import register


@register.register_method(output_names=["y"])
def same(x):
    return x
"""


def make(folder: Path, name: str, *versions: str, config: str = CONFIG) -> Path:
    servable = folder / name
    servable.mkdir(parents=True)
    (servable / "servable_config.py").write_text(config)
    for version in versions:
        (servable / version).mkdir()
        (servable / version / "a.mindir").write_text(version)
    for path in (*servable.rglob("*"), servable):
        os.utime(path, (1, 1))
    return servable


def names(packed: PackedServables) -> list[str]:
    return [path.name for path in packed.archives]


def test_all_versions_of_all_servables(tmp_path: Path) -> None:
    make(tmp_path / "a", "add", "1", "10", "9")
    make(tmp_path / "a", "plain")
    make(tmp_path / "a", ".hidden", "1")
    make(tmp_path / "b", "other", "3")
    (tmp_path / "a" / "notes").mkdir()
    packed = packed_servables([tmp_path / "a", tmp_path / "b"], tmp_path / "into")
    assert names(packed) == ["add-10.mar", "add-9.mar", "add-1.mar", "plain-1.mar", "other-3.mar"]
    assert packed.newest == {"add": "10", "plain": "1", "other": "3"}
    with open_archive(packed.archives[1]) as archive:
        assert (archive.manifest.model.model_name, archive.manifest.model.model_version) == ("add", "9")


def test_what_has_not_changed_is_not_packed_again(tmp_path: Path) -> None:
    servable = make(tmp_path / "a", "add", "1", "2")

    def packed() -> list[int]:
        return [path.stat().st_ino for path in packed_servables([tmp_path / "a"], tmp_path / "into").archives]

    first = packed()
    (servable / "__pycache__").mkdir()
    os.utime(servable, (1, 1))
    assert packed() == first
    now = time.time() + 10
    os.utime(servable / "2" / "a.mindir", (now, now))
    assert set(packed()).isdisjoint(first)


def test_a_servable_that_cannot_be_packed_does_not_keep_the_others(tmp_path: Path) -> None:
    make(tmp_path / "a", "bad", "1", config="def")
    make(tmp_path / "a", "good", "1")
    make(tmp_path / "a", "twice", "1", "01")
    packed = packed_servables([tmp_path / "a"], tmp_path / "into")
    assert (names(packed), packed.newest) == (["good-1.mar"], {"good": "1"})
    assert [file for _, file in packed.failures] == ["bad-1.mar", "twice.mar"]
    for (text, _), name in zip(packed.failures, ("bad 1", "twice"), strict=True):
        assert text.startswith(f"servable {name} of {tmp_path / 'a'} could not be packed: ")


def test_folders_that_stop_the_start(tmp_path: Path) -> None:
    make(tmp_path / "a", "add", "1")
    make(tmp_path / "b", "add", "1")
    (tmp_path / "empty").mkdir()
    for folders, text in (
        (["gone"], "gone: No such file or directory"),
        (["empty"], "empty: it holds no servable, which is a folder with a servable_config.py; name the folder"),
        (["a/add"], "a/add: it holds no servable, "),
        (["a", "b"], f"b: the servable add is in {tmp_path / 'a'}, too; a server has one of each name"),
    ):
        with pytest.raises(ServablesError) as raised:
            packed_servables([tmp_path / folder for folder in folders], tmp_path / "into")
        assert str(raised.value).startswith(f"--servables {tmp_path}/{text}")
    assert names(packed_servables([tmp_path / "a", tmp_path / "a"], tmp_path / "into")) == ["add-1.mar"]
