"""Archives of models whose stages name their own handlers."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from msx_archiver.cli import main
from msx_archiver.errors import PackError
from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from msx_archiver.reader import open_archive

CONFIG = """
stages:
  a: {handler: "h.py:A"}
  b: {handler: mindir, serializedFile: m.mindir}
  c: {handler: "k:C"}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "h.py").write_text("class A: pass\n")
    (tmp_path / "k.py").write_text("class C: pass\n")
    (tmp_path / "m.mindir").write_bytes(b"")
    return tmp_path


def packed(folder: Path, **options: Any) -> Path:
    config = options.pop("config_file", str(folder / "config.yaml"))
    return pack(PackOptions(model_name="m", config_file=config, export_path=folder / "out", force=True, **options))


def test_the_files_that_stages_name_are_packed(folder: Path) -> None:
    (folder / "out").mkdir()
    archive = packed(folder, extra_files=str(folder / "k.py"))
    assert {"h.py", "k.py", "m.mindir", "config.yaml"} <= set(zipfile.ZipFile(archive).namelist())
    with open_archive(archive) as opened:
        assert opened.manifest.model.handler is None


@pytest.mark.parametrize("file", ["h.py", "m.mindir"])
def test_one_that_is_missing(folder: Path, file: str) -> None:
    (folder / file).unlink()
    with pytest.raises(PackError, match=f"needs the file {file}, which is neither beside the config file nor packed"):
        packed(folder, extra_files=str(folder / "k.py"))


def test_a_handler_that_nobody_has(folder: Path) -> None:
    with pytest.raises(PackError, match="k"):
        packed(folder)  # k.py is not packed, and no handler of this name is installed


def test_one_that_is_not_python(folder: Path) -> None:
    (folder / "h.py").write_text("class")
    with pytest.raises(PackError, match="line 1"):
        packed(folder, extra_files=str(folder / "k.py"))


def test_a_handler_beside_stages(folder: Path) -> None:
    with pytest.raises(PackError, match="the config file has stages, which name their own handlers"):
        packed(folder, handler=str(folder / "h.py"))


def test_neither(folder: Path) -> None:
    (folder / "config.yaml").write_text("batchSize: 2\n")
    with pytest.raises(PackError, match="--handler is missing"):
        packed(folder)


def test_the_command(folder: Path) -> None:
    options = ["--model-name", "m", "--version", "1.0", "--config-file", str(folder / "config.yaml")]
    options += ["--extra-files", str(folder / "k.py"), "--export-path", str(folder / "out")]
    result = CliRunner().invoke(main, options)
    assert (result.exit_code, (folder / "out" / "m.mar").exists()) == (0, True), result.output
