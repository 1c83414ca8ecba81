"""GGUF files as models' folders, and in archives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msx_archiver.errors import PackError
from msx_archiver.identity import folder_digest
from msx_archiver.linked_gguf import gguf_in, linked_gguf
from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from msx_archiver.reader import open_archive
from tests.gguf_models import small

MADE = {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "given").mkdir()
    return small(tmp_path / "given" / "small.gguf")


def test_a_folder_of_a_link_and_what_is_made(model: Path, tmp_path: Path) -> None:
    target = linked_gguf(model, "small", tmp_path / "made")
    assert (target / "small.gguf").resolve() == model
    assert {file.name for file in target.iterdir()} == MADE | {"small.gguf", "MAR-INF"}
    with open_archive(target) as archive:
        entry = archive.manifest.model
    assert (entry.handler, entry.serialized_file, entry.config_file) == ("text_generation", "small.gguf", None)
    assert folder_digest(target) == folder_digest(linked_gguf(model, "small", tmp_path / "again"))


def test_files_beside_it_come_first(model: Path, tmp_path: Path) -> None:
    (model.parent / "tokenizer.json").write_text("{}")
    (model.parent / "model-config.yaml").write_text("minWorkers: 1\n")
    target = linked_gguf(model, "small", tmp_path / "made")
    assert (target / "tokenizer.json").read_text() == "{}"
    with open_archive(target) as archive:
        assert archive.manifest.model.config_file == "model-config.yaml"


def test_a_folder_is_one_of_gguf_if_nothing_else_is_in_it(model: Path) -> None:
    folder = model.parent
    assert gguf_in(model) == gguf_in(folder) == model
    (folder / "._small.gguf").touch()
    assert gguf_in(folder) == model
    (folder / "handler.py").touch()
    assert gguf_in(folder) is None
    (folder / "handler.py").rename(folder / "model.safetensors")
    assert gguf_in(folder) is None
    (folder / "model.safetensors").rename(folder / "other.gguf")
    with pytest.raises(PackError, match="has 2 GGUF files: name the one that is to be served"):
        gguf_in(folder)


def options(folder: Path, handler: str = "text_generation", **files: str) -> PackOptions:
    return PackOptions(model_name="small", handler=handler, export_path=folder, force=True, **files)  # type: ignore[arg-type]


def test_packed(model: Path, tmp_path: Path) -> None:
    said: list[str] = []
    path = pack(options(tmp_path, serialized_file=str(model)), warn=said.append)
    with open_archive(path) as archive:
        assert {member.path for member in archive.files} == MADE | {"small.gguf", "MAR-INF/MANIFEST.json"}
        assert archive.manifest.files.keys() == MADE | {"small.gguf"}
        config = json.loads(archive.read("config.json"))
        assert archive.manifest.model.serialized_file == "small.gguf"
    assert config["quantization_config"]["quant_method"] == "gguf"
    assert said == []


def test_packed_with_a_tokenizer_of_its_own(model: Path, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    own = str(tmp_path / "tokenizer.json")
    with open_archive(pack(options(tmp_path, serialized_file=str(model), extra_files=own))) as archive:
        assert archive.read("tokenizer.json") == b"{}"


def test_packed_as_a_folder_beside_others(model: Path, tmp_path: Path) -> None:
    with open_archive(pack(options(tmp_path, extra_files=str(model.parent)))) as archive:
        assert {member.path for member in archive.files} > MADE
    small(model.with_name("second.gguf"))
    with pytest.raises(PackError, match="a model is one GGUF file; leave the others out"):
        pack(options(tmp_path, extra_files=str(model.parent)))


def test_the_same_bytes_each_time(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    one, other = (pack(options(tmp_path / name, serialized_file=str(model))).read_bytes() for name in ("one", "other"))
    assert one == other


def test_another_handler_gets_the_file_alone(model: Path, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def handle(data, context):\n    return data\n")
    path = pack(options(tmp_path, handler=str(tmp_path / "own.py"), serialized_file=str(model)))
    with open_archive(path) as archive:
        assert not MADE & {member.path for member in archive.files}


def test_a_file_that_cannot_be_served_is_not_packed(tmp_path: Path) -> None:
    model = small(tmp_path / "m.gguf", {"general.architecture": "mamba"})
    with pytest.raises(PackError, match=r"m\.gguf cannot be served: the architecture mamba is not read from GGUF"):
        pack(options(tmp_path, serialized_file=str(model)))
    assert not list(tmp_path.glob("*.mar"))
