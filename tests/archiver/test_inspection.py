from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from msx_archiver.inspection import InspectionReport, inspect
from msx_archiver.reader import open_archive
from tests.archiver.conftest import Entry, write_folder, write_tgz, write_zip

DATA = Path(__file__).parents[1] / "core" / "data"
MANIFEST = json.dumps({"model": {"modelName": "m", "handler": "h", "configFile": "c.yaml"}}).encode()


def entries(config: bytes = b"batchSize: 2", **files: str) -> list[Entry]:
    found: list[Entry] = [(f"{name}.mindir", (DATA / source).read_bytes()) for name, source in files.items()]
    return [*found, ("c.yaml", config), ("MAR-INF/MANIFEST.json", MANIFEST)]


def report(path: Path) -> InspectionReport:
    with open_archive(path) as archive:
        return inspect(archive)


def stored(path: Path, members: list[Entry]) -> Path:
    return write_zip(path, members, zipfile.ZIP_STORED)


def folder(path: Path, members: list[Entry]) -> Path:
    return write_folder(path, dict(members))


@pytest.mark.parametrize("write", [write_zip, stored, write_tgz, folder])
def test_graphs_in_every_format(tmp_path: Path, write: Callable[[Path, list[Entry]], Path]) -> None:
    found = report(write(tmp_path / "m", entries(a="dynamic.mindir", b="two.mindir")))
    assert [graph.path for graph in found.graphs] == ["a.mindir", "b.mindir"]
    assert [tensor.name for tensor in found.graphs[1].inputs] == ["a", "b"]
    assert found.graphs[0].inputs[0].shape == [-1, 4]
    assert found.graphs[0].producer == "MindSpore 2.10.0"
    assert found.config == "batchSize: 2"
    assert found.warnings == []


def test_graph_that_cannot_be_read_is_a_warning(tmp_path: Path) -> None:
    found = report(write_zip(tmp_path / "m", [("bad.mindir", b"no"), ("empty.mindir", b""), *entries(e="enc.mindir")]))
    assert found.graphs == []
    assert [warning.split()[0] for warning in found.warnings] == ["bad.mindir", "empty.mindir", "e.mindir"]


def test_wrong_config_is_a_warning_that_names_it(tmp_path: Path) -> None:
    found = report(write_zip(tmp_path / "m", entries(config=b"batchSize: [")))
    assert len(found.warnings) == 1
    assert found.warnings[0].startswith("c.yaml: ")


def test_digests_are_those_of_the_manifest(tmp_path: Path) -> None:
    assert {file.sha256 for file in report(write_zip(tmp_path / "m", entries())).files} == {None}
