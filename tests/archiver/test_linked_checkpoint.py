"""A folder in Hugging Face's layout as a model's folder of links."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from msx_archiver.errors import PackError
from msx_archiver.identity import folder_digest
from msx_archiver.linked_checkpoint import linked_checkpoint
from msx_archiver.reader import open_archive

FILES = ("model.safetensors", "tokenizer.json", "merges.txt", "tokenizer.model", "chat_template.jinja")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint"
    (folder / "1_Pooling").mkdir(parents=True)
    for name in (*FILES, "1_Pooling/config.json"):
        (folder / name).write_text("{}")
    for name in ("modeling_own.py", "pytorch_model.bin", "model.onnx", ".gitattributes", "README.md", "other.yaml"):
        (folder / name).write_text("")
    configure(folder, architectures=["LlamaForCausalLM"])
    return folder


def test_a_language_model_that_scores_pairs(checkpoint: Path, tmp_path: Path) -> None:
    modules = [{"type": f"sentence_transformers.{it}"} for it in ("base.Transformer", "cross_encoder.LogitScore")]
    (checkpoint / "modules.json").write_text(json.dumps(modules))
    target = linked_checkpoint(checkpoint, "ranker", tmp_path / "made")
    with open_archive(target) as archive:
        assert archive.manifest.model.handler == "sequence_classification"


def configure(folder: Path, **members: Any) -> None:
    (folder / "config.json").write_text(json.dumps(members))


def test_links_to_what_handlers_read(checkpoint: Path, tmp_path: Path) -> None:
    target = linked_checkpoint(checkpoint, "llama", tmp_path / "made")
    linked = sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_symlink())
    assert linked == sorted([*FILES, "1_Pooling/config.json", "config.json"])
    assert (target / "model.safetensors").resolve() == checkpoint / "model.safetensors"
    with open_archive(target) as archive:
        model = archive.manifest.model
    assert (model.model_name, model.model_version, model.handler) == ("llama", "1.0", "text_generation")
    assert model.config_file is None


def test_the_names_of_modelslim(checkpoint: Path, tmp_path: Path) -> None:
    (checkpoint / "model.safetensors").rename(checkpoint / "quant_model_weight_w8a8.safetensors")
    (checkpoint / "quant_model_description.json").write_text("{}")
    target = linked_checkpoint(checkpoint, "llama", tmp_path / "made")
    assert sorted(path.name for path in target.glob("quant_*")) == [
        "quant_model_description.json",
        "quant_model_weight_w8a8.safetensors",
    ]


def test_its_own_configuration(checkpoint: Path, tmp_path: Path) -> None:
    (checkpoint / "model-config.yaml").write_text("minWorkers: 1")
    target = linked_checkpoint(checkpoint, "llama", tmp_path / "made")
    with open_archive(target) as archive:
        assert archive.manifest.model.config_file == "model-config.yaml"


@pytest.mark.parametrize(
    ("members", "modules", "handler"),
    [
        ({"architectures": ["Qwen3ForCausalLM"]}, False, "text_generation"),
        ({"architectures": ["Gemma3ForConditionalGeneration"]}, False, "text_generation"),
        ({}, False, "text_generation"),
        ({"architectures": ["BertModel"]}, False, "embedding"),
        ({"architectures": ["Qwen3ForCausalLM"]}, True, "embedding"),
        ({"architectures": ["BertForSequenceClassification"]}, False, "sequence_classification"),
        ({"architectures": ["BertForSequenceClassification"]}, True, "sequence_classification"),
    ],
)
def test_the_handler(checkpoint: Path, tmp_path: Path, members: dict[str, Any], modules: bool, handler: str) -> None:
    configure(checkpoint, **members)
    if modules:
        (checkpoint / "modules.json").write_text("[]")
    with open_archive(linked_checkpoint(checkpoint, "m", tmp_path / "made")) as archive:
        assert archive.manifest.model.handler == handler


def test_the_same_content_has_the_same_digest(checkpoint: Path, tmp_path: Path) -> None:
    """So that a restart finds the compiled graphs, and the workers that it remembers."""
    digests = {folder_digest(linked_checkpoint(checkpoint, "m", tmp_path / name)) for name in ("a", "b")}
    assert len(digests) == 1
    os.utime(checkpoint / "model.safetensors", (1, 1))
    assert folder_digest(linked_checkpoint(checkpoint, "m", tmp_path / "c")) not in digests


def refused(checkpoint: Path, name: str, target: Path) -> str:
    with pytest.raises(PackError) as error:
        linked_checkpoint(checkpoint, name, target)
    assert not target.exists()
    return str(error.value)


def test_what_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    target = tmp_path / "made"
    assert "Model name" in refused(checkpoint, "../m", target)
    (checkpoint / "config.json").write_text("[]")
    assert refused(checkpoint, "m", target).endswith("config.json is not a JSON object of at most 1 MiB.")
    (checkpoint / "config.json").unlink()
    assert "name the folder of a model in Hugging Face's layout" in refused(checkpoint, "m", target)
    configure(checkpoint)
    (checkpoint / "model.safetensors").unlink()
    assert "has no *.safetensors" in refused(checkpoint, "m", target)
