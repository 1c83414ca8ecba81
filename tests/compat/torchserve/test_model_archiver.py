"""The package `model_archiver` of build scripts."""

from __future__ import annotations

import logging
import sys
import zipfile
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

import pytest

from msx_archiver.reader import open_archive
from msx_torchserve.packages import model_archiver
from msx_torchserve.packages.model_archiver import ModelArchiver, ModelArchiverConfig
from msx_torchserve.packages.model_archiver.manifest_components.manifest import RuntimeType
from msx_torchserve.packages.model_archiver.model_archiver_error import ModelArchiverError
from msx_torchserve.packages.model_archiver.model_packaging import generate_model_archive, package_model


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelArchiverConfig:
    monkeypatch.chdir(tmp_path)
    for name in ("h.py", "model.py", "weights.pt", "extra.txt", "requirements.txt"):
        (tmp_path / name).write_text("")
    (tmp_path / "c.yaml").write_text("batchSize: 2\n")
    return ModelArchiverConfig(
        model_name="m",
        handler="h.py",
        version="2.0",
        serialized_file="weights.pt",
        model_file="model.py",
        extra_files="extra.txt",
        requirements_file="requirements.txt",
        config_file="c.yaml",
        runtime=RuntimeType.PYTHON3.value,
    )


def test_an_archive(config: ModelArchiverConfig, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    ModelArchiver.generate_model_archive(config)
    with open_archive(tmp_path / "m.mar") as archive:
        model = archive.manifest.model
        assert (model.model_name, model.model_version, model.handler) == ("m", "2.0", "h.py")
        assert (model.model_file, model.serialized_file) == ("model.py", "weights.pt")
        assert archive.manifest.runtime == "python3"
    assert caplog.messages[-1] == f"Successfully exported model m to file {tmp_path / 'm.mar'}"


def test_all_formats_and_force(config: ModelArchiverConfig, tmp_path: Path) -> None:
    config.export_path = str(tmp_path / "made")
    for archive_format, name in (("zip-store", "m.mar"), ("tgz", "m.tar.gz"), ("no-archive", "m")):
        config.archive_format = archive_format
        generate_model_archive(config)
        assert (tmp_path / "made" / name).exists()
    config.archive_format, config.force = "default", True
    package_model(config, manifest="{}")
    assert zipfile.ZipFile(tmp_path / "made" / "m.mar").namelist()


def test_what_is_wrong(config: ModelArchiverConfig, caplog: pytest.LogCaptureFixture) -> None:
    generate_model_archive(config)
    with pytest.raises(ModelArchiverError, match=r"m\.mar already exists\. Give --force"):
        generate_model_archive(config)
    assert "already exists" in caplog.messages[-1]
    config.model_name = "a b"
    with pytest.raises(ModelArchiverError, match="Model name contains special characters"):
        ModelArchiver.generate_model_archive(config)


def test_by_the_programs_arguments(
    config: ModelArchiverConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["pack", "--model-name", "n", "--version", "1.0", "--handler", "h.py"])
    with pytest.raises(SystemExit) as ended:
        generate_model_archive()
    assert ended.value.code == 0
    assert (tmp_path / "n.mar").is_file()


def test_of_parsed_arguments(config: ModelArchiverConfig, tmp_path: Path) -> None:
    assert ModelArchiverConfig.from_args(Namespace(**asdict(config), more=1)) == config
    assert config.export_path == str(tmp_path)
    assert model_archiver.__version__
