from __future__ import annotations

from pathlib import Path

import pytest

from msx_frontend.models.startup.huggingface_folders import HuggingFaceError, link_checkpoints
from msx_frontend.models.startup.servable_folders import PackedServables
from tests.gguf_models import small


def make(folder: Path) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    (folder / "model.safetensors").write_text("")
    return folder


def linked(into: Path, *given: str) -> PackedServables:
    packed = PackedServables()
    link_checkpoints(given, into, packed)
    return packed


def test_by_name_and_by_folder(tmp_path: Path) -> None:
    folder, into = make(tmp_path / "llama"), tmp_path / "into"
    packed = linked(into, f"mine={folder}", str(folder))
    assert (packed.archives, packed.failures) == ([into / "mine", into / "llama"], [])
    assert (into / "mine" / "MAR-INF" / "MANIFEST.json").is_file()
    assert linked(into, f"mine={folder}").archives == [into / "mine"], "again, at the next start"


def test_gguf_files(tmp_path: Path) -> None:
    """The file itself, and the folder of one."""
    (tmp_path / "given").mkdir()
    file, into = small(tmp_path / "given" / "tiny.gguf"), tmp_path / "into"
    packed = linked(into, str(file), f"mine={file.parent}")
    assert (packed.archives, packed.failures) == ([into / "tiny", into / "mine"], [])
    assert all((into / name / "tiny.gguf").resolve() == file for name in ("tiny", "mine"))
    assert (into / "tiny" / "config.json").is_file()
    small(file, {"general.architecture": "mamba"})
    [(sentence, name)] = linked(into, str(file)).failures
    assert name == "tiny"
    assert "the architecture mamba is not read from GGUF" in sentence


def test_one_that_is_not_there_does_not_stop_the_others(tmp_path: Path) -> None:
    folder, into = make(tmp_path / "llama"), tmp_path / "into"
    packed = linked(into, f"a={tmp_path / 'absent'}", f"../b={folder}", f"c={folder}")
    assert packed.archives == [into / "c"]
    assert [name for _, name in packed.failures] == ["a", "../b"]
    assert packed.failures[0][0].startswith("model a (--huggingface) could not be loaded: ")
    assert not (tmp_path / "b").exists()


def test_a_name_twice(tmp_path: Path) -> None:
    folder = make(tmp_path / "llama")
    with pytest.raises(HuggingFaceError, match="another model has the name a"):
        linked(tmp_path / "into", f"a={folder}", f"a={folder}")
