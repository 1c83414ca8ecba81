from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from msx_mindspore_serving.packages.mindspore_serving.server.start_config import ServableStartConfig
from msx_mindspore_serving.packages.mindspore_serving.server.start_list import (
    checked,
    from_script_folder,
    merged,
    newest,
)


def make(folder: Path, name: str, *versions: str) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "servable_config.py").touch()
    for version in versions:
        (folder / name / version).mkdir()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of a start script, with servables beside it."""
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "serving_server.py")])
    make(tmp_path, "add", "1", "002", "10", "x1", "1a")
    make(tmp_path, "plain")
    (tmp_path / "add" / "11").touch()
    return tmp_path


def config(name: str = "add", directory: str = ".", **options: Any) -> ServableStartConfig:
    return ServableStartConfig(directory, name, **options)


def test_the_type_of_the_argument() -> None:
    one = config()
    assert checked(one) == (one,)
    assert checked([one]) == [one]
    for wrong, text in (
        ("add", "Parameter 'add' should be ServableStartConfig, list or tuple of ServableStartConfig, but actually "),
        ({one}, f"Parameter '{ {one} }' should be ServableStartConfig, list or tuple of ServableStartConfig, but "),
        ((1,), "The item of parameter '(1,)' should be ServableStartConfig, but actually <class 'int'>"),
    ):
        with pytest.raises(RuntimeError) as raised:
            checked(wrong)
        assert str(raised.value).startswith(text)


def test_the_newest_version_is_the_largest_number(folder: Path) -> None:
    assert newest(str(folder / "add")) == 10
    [start] = merged([config()])
    assert (start.directory, start.name, start.version) == (str(folder), "add", 10)
    assert merged([config("plain")])[0].version == 0
    assert merged([config("plain", version_number=7)])[0].version == 7


def test_configurations_of_a_version_are_merged(folder: Path) -> None:
    starts = merged(
        [
            config(device_ids=(0, 1), num_parallel_workers=2),
            config("plain"),
            config(version_number=10, device_ids=(1, 2), num_parallel_workers=5),
            config(version_number=1, device_ids=3),
        ]
    )
    found = [(one.name, one.version, one.device_ids, one.num_parallel_workers) for one in starts]
    assert found == [("add", 10, (0, 1, 2), 5), ("plain", 0, (), 1), ("add", 1, (3,), 0)]


def test_what_does_not_fit_together(folder: Path) -> None:
    make(folder / "other", "add")
    key: dict[str, Any] = {"dec_key": b"0" * 16}
    different = (
        "The servable directory of servable name add is different in multiple configurations, servable directory: "
        f"{folder / 'other'} and {folder}"
    )
    decryption = "The dec key or dec mode of servable name add is different in multiple configurations."
    for configs, text in (
        ([config(), config(directory="other")], different),
        ([config(), config(**key)], decryption),
        ([config(**key), config(**key, dec_mode="AES-CBC")], decryption),
    ):
        with pytest.raises(RuntimeError) as raised:
            merged(configs)
        assert str(raised.value) == text


def test_what_is_missing(folder: Path) -> None:
    (folder / "empty").mkdir()
    where = f"servable directory '{folder}', servable name"
    for name, text in (
        ("gone", f"directory '{folder}/gone' not exist, {where} 'gone'"),
        ("empty", f"file '{folder}/empty/servable_config.py' not exist,  {where} 'empty'"),
    ):
        with pytest.raises(RuntimeError) as raised:
            merged([config(name)])
        assert str(raised.value) == f"Check servable config failed, {text}"


def test_paths_are_relative_to_the_script(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert from_script_folder("models") == str(folder / "models")
    assert from_script_folder("/models") == "/models"
    (folder / "link").symlink_to(folder / "add")
    assert from_script_folder("link") == str(folder / "add")


def test_the_key_is_not_shown(folder: Path) -> None:
    assert "secret" not in repr(merged([config(dec_key=b"secretsecretsecr")]))
