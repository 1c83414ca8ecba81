"""`msx-serve doctor` says of each model of the start whether its batches will overlap."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msx_frontend.cli.doctor import overlap
from msx_frontend.cli.doctor.machine import Machine
from msx_frontend.cli.doctor.overlap import check_overlap
from msx_frontend.findings import Level
from tests.archiver.conftest import write_folder
from tests.frontend.assembly.in_process import config_of
from tests.frontend.packing import pack_model


def told(folder: Path, *models: str, **config: object) -> list[str]:
    findings = [*check_overlap(Machine(config_of(folder, load_models=models, model_store=folder, **config)))]
    assert {(one.check, one.level) for one in findings} <= {("overlap", Level.OK)}
    return [one.found for one in findings]


def write_model(folder: Path, source: str, config: str = "", **model: str) -> None:
    manifest = {"model": {"modelName": folder.name, "configFile": "c.yaml", **model}}
    files = {"MAR-INF/MANIFEST.json": json.dumps(manifest), "c.yaml": config, "h.py": source}
    write_folder(folder, {name: text.encode() for name, text in files.items()})


def test_each_model_and_why_not(tmp_path: Path) -> None:
    for name, service, config in (
        ("own", "three_steps", "overlap: true"),
        ("off", "three_steps", "overlap: false"),
        ("function", "echo", ""),
    ):
        pack_model(tmp_path, name, service=service, config=config)
    assert told(tmp_path, "mine=own.mar", "off.mar", "function.mar") == [
        "mine: preprocess and postprocess run beside inference",
        "off: batches run one after the other: model-config.yaml has overlap: false",
        "function: batches run one after the other: its handle() is not that of a base class with preprocess, "
        "inference and postprocess",
    ]


def test_an_envelope_is_the_servers(tmp_path: Path) -> None:
    pack_model(tmp_path, "own", service="three_steps", config="overlap: true")
    (found,) = told(tmp_path, "own.mar", service_envelope="json")
    assert found.endswith(": service_envelope=json encloses each call")


def test_what_is_known_only_once_it_is_loaded(tmp_path: Path) -> None:
    write_model(tmp_path / "m", "from nowhere import Base\nclass H(Base): ...\n", handler="h.py")
    (found,) = told(tmp_path, "m")
    assert found == "m: known once a worker has loaded it, and then in describe: the source of nowhere is not here"


def test_each_stage_is_told(tmp_path: Path) -> None:
    stages = "stages:\n  first: {handler: mindir}\n  last: {handler: h.py, overlap: false}\n"
    write_model(tmp_path / "m", "def handle(data, context): ...\n", stages)
    assert told(tmp_path, "m") == [
        "m/first: preprocess and postprocess run beside inference",
        "m/last: batches run one after the other: model-config.yaml has overlap: false",
    ]


def test_what_cannot_be_read_is_left_to_the_other_checks(tmp_path: Path) -> None:
    (tmp_path / "damaged.mar").write_bytes(b"no zip")
    write_model(tmp_path / "m", "def handle(data, context): ...\n", "overlap: 7", handler="h.py")
    assert told(tmp_path, "missing.mar", "damaged.mar", "https://host/m.mar", "m") == []


def test_only_so_many_archives_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "MOST_READ", 1)
    for name in ("a", "b"):
        pack_model(tmp_path, name)
    first, last = told(tmp_path, "all")
    assert first.startswith("a: ")
    assert last == "only the first 1 archives were read: describe says it of each model that is loaded"
