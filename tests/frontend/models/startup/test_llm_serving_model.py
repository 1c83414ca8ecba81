"""`--llm-serving` at a start."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_frontend.config.load import load_settings
from msx_frontend.config.server_config import ServerConfigError
from msx_frontend.models.startup.huggingface_folders import HuggingFaceError
from msx_frontend.models.startup.llm_serving_model import link_llm_serving
from msx_frontend.models.startup.servable_folders import PackedServables

YAML = "model_config: {model_name: llama_dyn}\nserving_config: {server_ip: 127.0.0.1, server_port: 19280}\n"


@pytest.fixture
def yaml(tmp_path: Path) -> Path:
    file = tmp_path / "config.yaml"
    file.write_text(YAML)
    return file


def weights(folder: Path) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    (folder / "model.safetensors").write_text("")
    return folder


def test_the_folder_of_weights(yaml: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    packed = PackedServables()
    with caplog.at_level("INFO", "msx.startup"):
        link_llm_serving(yaml, (str(weights(tmp_path / "weights")),), tmp_path / "into", packed)
    assert (packed.archives, packed.failures) == ([tmp_path / "into" / "llama_dyn"], [])
    assert "config.yaml: model_config.model_name: the model's name, llama_dyn" in caplog.text


def test_what_is_refused_is_a_failure_of_the_model(yaml: Path, tmp_path: Path) -> None:
    packed = PackedServables()
    link_llm_serving(yaml, (), tmp_path / "into", packed)
    assert packed.archives == []
    assert "prefill_model: needed, and missing. Serve the weights instead" in packed.failures[0][0]


def test_several_folders(yaml: Path, tmp_path: Path) -> None:
    with pytest.raises(HuggingFaceError, match="2 folders, and the model of --llm-serving is one"):
        link_llm_serving(yaml, ("a=x", "b=y"), tmp_path / "into", PackedServables())


def test_it_listens_at_its_port_unless_another_is_given(yaml: Path) -> None:
    config = load_settings({"llm_serving": yaml}, None, {}).config
    assert str(config.inference_address) == "http://127.0.0.1:19280"
    config = load_settings({"llm_serving": yaml, "inference_address": "http://127.0.0.1:8000"}, None, {}).config
    assert str(config.inference_address) == "http://127.0.0.1:8000"


def test_a_yaml_that_cannot_be_read_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(ServerConfigError, match=r"none\.yaml: cannot be read"):
        load_settings({"llm_serving": tmp_path / "none.yaml"}, None, {})
