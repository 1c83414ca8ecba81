"""Models by the yaml of llm-serving."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from msx_archiver.cli import main
from msx_archiver.errors import PackError
from msx_archiver.llm_serving.config import LlmServing, checked, read_config
from msx_archiver.llm_serving.graphs import graph_pair
from msx_archiver.llm_serving.model import imported_model
from msx_archiver.llm_serving.packing import link_imported, pack_imported
from msx_archiver.llm_serving.report import FATES, UNKNOWN, report
from msx_archiver.options import PackOptions
from msx_archiver.reader import open_archive
from msx_core.mindir import MindIRSignature, TensorSpec

CACHES = (TensorSpec("keys", "float32", (2, 4, 8)), TensorSpec("values", "float32", (2, 4, 8)))


def signature(*names: str, operators: frozenset[str] = frozenset(), size: int = 4, texts: int = 1) -> MindIRSignature:
    inputs = [TensorSpec(name, "int32", (texts, size)) for name in names]
    return MindIRSignature(inputs, [], operators, frozenset(), "", "MindSpore", "2.10")


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A configuration whose files are there; their signatures are those of `SIGNATURES`."""
    for name in ("prefill.mindir", "increment.mindir", "tokenizer.model", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_text("{}")
    made = {
        "prefill.mindir": signature("tokens", "batch_valid_length", "keys", "values"),
        "increment.mindir": signature("tokens", "batch_valid_length", "keys", "values", size=1),
    }
    for module in ("llm_serving.graphs", "weights"):
        monkeypatch.setattr(f"msx_archiver.{module}.read_signature", lambda file: made[Path(file).name])
    return {
        "model_path": {
            "prefill_model": [str(tmp_path / "prefill.mindir")],
            "decode_model": [str(tmp_path / "increment.mindir")],
            "argmax_model": "argmax.mindir",
            "topk_model": "topk.mindir",
        },
        "model_config": {
            "model_name": "llama_dyn",
            "max_generate_length": 8192,
            "end_token": 2,
            "seq_length": [512, 1024],
            "pad_token_id": 3,
        },
        "serving_config": {
            "agent_ports": [13000],
            "start_device_id": 5,
            "server_ip": "localhost",
            "server_port": 19280,
        },
        "tokenizer": {"type": "LlamaTokenizer", "vocab_file": str(tmp_path / "tokenizer.model")},
    }


def changed(given: dict[str, Any], section: str, **members: Any) -> LlmServing:
    return checked({**given, section: {**given.get(section, {}), **members}}, "config.yaml")


def test_a_pair_is_linked_with_its_configuration(given: dict[str, Any], tmp_path: Path) -> None:
    model = imported_model(checked(given, "config.yaml"))
    folder = link_imported(model, tmp_path / "made")
    assert link_imported(model, folder) == folder, "again, at the next start"
    config = yaml.safe_load((folder / "model-config.yaml").read_text())
    assert config == {
        "aliases": ["llama2", "internlm"],
        "deviceIds": [5],
        "maxTotalTokens": 1024,
        "textGeneration": {
            "prefill": "prefill/prefill.mindir",
            "increment": "increment/increment.mindir",
            "padToken": 3,
        },
    }
    assert json.loads((folder / "generation_config.json").read_text()) == {"eos_token_id": 2}
    assert (folder / "prefill/prefill.mindir").is_symlink()
    with open_archive(folder) as archive:
        assert archive.manifest.model.handler == "text_generation_mindir"
        assert {"tokenizer.json", "tokenizer_config.json", "increment/increment.mindir"} <= {
            one.path for one in archive.members
        }


@pytest.mark.parametrize("absolute", [True, False])
def test_a_graph_whose_weights_are_elsewhere(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absolute: bool
) -> None:
    kept = tmp_path.parent / "model-config.yaml"
    kept.write_text("mine")
    named = frozenset({str(kept) if absolute else "../model-config.yaml"})
    found = replace(signature("tokens", "keys"), external_files=named)
    monkeypatch.setattr("msx_archiver.weights.read_signature", lambda file: found)
    model = imported_model(checked(given, "config.yaml"))
    with pytest.raises(PackError, match="has an absolute path" if absolute else "leaves the model's folder"):
        link_imported(model, tmp_path / "made")
    with pytest.raises(PackError, match="has an absolute path" if absolute else "leaves the model's folder"):
        pack_imported(model, PackOptions(model_name=model.name, handler=model.handler, export_path=tmp_path))
    assert kept.read_text() == "mine"
    assert not (tmp_path / "made").exists()


def checkpoint(folder: Path, **files: str) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    for name in ("model.safetensors", "tokenizer.json"):
        (folder / name).write_text("")
    return folder


def test_a_folder_of_weights_in_its_place(given: dict[str, Any], tmp_path: Path) -> None:
    """Its own model-config.yaml counts for more, and the files of the yaml need not be there."""
    weights = checkpoint(tmp_path / "weights")
    (weights / "model-config.yaml").write_text("maxTotalTokens: 64\ndeviceIds: [1]\n")
    config = changed(given, "model_path", prefill_model=["/nowhere"], decode_model=["/nowhere"])
    folder = link_imported(imported_model(config, weights), tmp_path / "made")
    assert yaml.safe_load((folder / "model-config.yaml").read_text()) == {
        "aliases": ["llama2", "internlm"],
        "deviceIds": [1],
        "maxTotalTokens": 64,
    }
    with open_archive(folder) as archive:
        assert (archive.manifest.model.handler, archive.manifest.model.model_name) == ("text_generation", "llama_dyn")


def test_the_command_packs_and_says_each_key(given: dict[str, Any], tmp_path: Path) -> None:
    file, weights = tmp_path / "config.yaml", checkpoint(tmp_path / "weights")
    file.write_text(yaml.safe_dump({**given, "own": {"key": 1}}))
    flags = ["--llm-serving", str(file), "--huggingface", str(weights), "--export-path", str(tmp_path)]
    done = CliRunner().invoke(main, flags)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert f"own.key: {UNKNOWN}" in lines
    assert "model_path.prefill_model: not needed: the Hugging Face folder is served" in lines
    assert lines[-1] == str(tmp_path / "llama_dyn.mar")
    with open_archive(tmp_path / "llama_dyn.mar") as archive:
        assert archive.manifest.model.handler == "text_generation"
    refused = CliRunner().invoke(main, [*flags, "--model-file", "net.py"])
    assert "--model-file has no effect with --llm-serving: the yaml says all of it." in refused.output
    alone = CliRunner().invoke(main, ["--huggingface", str(weights)])
    assert "--huggingface stands beside --llm-serving" in alone.output


@pytest.mark.parametrize("huggingface", [False, True])
def test_each_key_has_its_line(given: dict[str, Any], huggingface: bool) -> None:
    config = checked(given, "config.yaml")
    lines = dict(line.split(": ", 1) for line in report(config, given, huggingface=huggingface))
    assert set(lines) == {f"{section}.{name}" for section in given for name in given[section]}
    assert lines.keys() <= FATES.keys()
    assert lines["model_config.model_name"] == "the model's name, llama_dyn"


SPOKEN_FOR = {
    *("model_path.prefill_model", "model_path.decode_model", "model_config.model_name", "model_config.backend"),
    *("model_config.seq_length", "model_config.max_generate_length", "model_config.end_token"),
    *("model_config.pad_token_id", "tokenizer.vocab_file", "huggingface"),
    *("serving_config.start_device_id", "serving_config.agent_ports"),
    *("serving_config.server_ip", "serving_config.server_port"),
}
"""Keys with an effect."""


def made_of(given: dict[str, Any], huggingface: Path | None = None) -> tuple[Any, ...]:
    """All of the model but the paths of its sources."""
    model = imported_model(checked(given, "config.yaml"), huggingface)
    return model.name, model.handler, [*model.files], model.texts


@pytest.mark.parametrize("key", sorted(FATES.keys() - SPOKEN_FOR))
@pytest.mark.parametrize("huggingface", [False, True])
def test_other_keys_have_no_effect(given: dict[str, Any], tmp_path: Path, key: str, huggingface: bool) -> None:
    weights = checkpoint(tmp_path / "weights") if huggingface else None
    section, _, name = key.partition(".")
    plain = made_of(given, weights)
    given.setdefault(section, {})[name] = True if name == "page_attention" else 7
    assert made_of(given, weights) == plain
    line = dict(one.split(": ", 1) for one in report(checked(given, "x"), given, huggingface=huggingface))[key]
    assert line.startswith(("no effect", "accepted, not needed"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("model_config.seq_length", [16]), ("model_config.max_generate_length", 16), ("model_config.end_token", 9)),
        *(("model_config.pad_token_id", 9), ("model_config.page_attention", True), ("model_config.backend", "kbk")),
        ("tokenizer.vocab_file", "/nowhere"),
    ],
)
def test_what_a_folder_of_weights_says_itself(given: dict[str, Any], tmp_path: Path, key: str, value: Any) -> None:
    weights = checkpoint(tmp_path / "weights")
    section, _, name = key.partition(".")
    plain = made_of(given, weights)
    given[section][name] = value
    assert made_of(given, weights) == plain


@pytest.mark.parametrize(
    ("members", "length"),
    [
        ({"seq_length": [512, 1024], "max_generate_length": 8192}, 1024),
        ({"seq_length": [512, 1024], "max_generate_length": 600}, 600),
        ({"seq_length": [256], "max_generate_length": None}, 256),
        ({"seq_length": None, "max_generate_length": 300}, 300),
        ({"seq_length": None, "max_generate_length": None}, None),
    ],
)
def test_the_longest_text(given: dict[str, Any], members: dict[str, Any], length: int | None) -> None:
    model = imported_model(changed(given, "model_config", **members))
    assert yaml.safe_load(model.texts["model-config.yaml"]).get("maxTotalTokens") == length


@pytest.mark.parametrize(("first", "agents", "devices"), [(5, 1, [5]), (2, 3, [2, 3, 4]), (0, 0, [0]), (None, 2, None)])
def test_devices(
    given: dict[str, Any], tmp_path: Path, first: int | None, agents: int, devices: list[int] | None
) -> None:
    ports = [13000 + agent for agent in range(agents)]
    config = changed(given, "serving_config", start_device_id=first, agent_ports=ports)
    for weights in (None, checkpoint(tmp_path / "weights")):
        made = yaml.safe_load(imported_model(config, weights).texts["model-config.yaml"])
        assert made.get("deviceIds") == devices


def test_several_agents_are_said(given: dict[str, Any]) -> None:
    config = changed(given, "serving_config", agent_ports=[1, 2])
    (line,) = [one for one in report(config, given, huggingface=True) if one.startswith("serving_config.agent_ports")]
    assert "of a model of 2 ranks, parallelType" in line


FOLDER = "--huggingface FOLDER"
OPERATORS = (
    *("ReshapeAndCache", "PagedAttention", "PagedAttentionMask"),
    *("PromptKVCache", "DecoderKVCache", "KVCacheMgr", "PromptFlashAttention", "IncreFlashAttention"),
)


@pytest.mark.parametrize(
    ("section", "members", "message"),
    [
        ("model_path", {"prefill_model": ["a", "b"], "decode_model": ["a", "b"]}, "prefill_model: 2 files, of as many"),
        ("model_path", {"decode_model": []}, "decode_model: needed, and missing"),
        ("model_path", {"decode_model": "/nowhere.mindir"}, "/nowhere.mindir is not there"),
        ("model_config", {"backend": "kbk"}, "model_config.backend: kbk"),
    ],
)
def test_what_has_no_pair(given: dict[str, Any], section: str, members: dict[str, Any], message: str) -> None:
    with pytest.raises(PackError, match=message) as refused:
        graph_pair(changed(given, section, **members))
    assert FOLDER in str(refused.value)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (signature("tokens", "slot_mapping"), "has the input slot_mapping, of a paged cache"),
        (signature("tokens", "block_tables"), "has the input block_tables, of a paged cache"),
        *((signature("tokens", operators=frozenset({name})), f"has the operator {name}, of") for name in OPERATORS),
        (signature("tokens", "keys", size=-1), "has the input tokens with sizes that vary"),
        (
            signature("tokens", "batch_valid_length", "batch_index", "zactivate_len"),
            "has no caches: none is among its inputs",
        ),
        (
            signature("tokens", "batch_valid_length", operators=frozenset({"Assign"}), texts=3),
            "has its caches as parameters, and takes 3 texts: export it with one",
        ),
    ],
)
def test_graphs_that_are_not_served(
    given: dict[str, Any], found: MindIRSignature, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the graph of one token, which alone needs caches."""
    pair = {"prefill.mindir": signature("tokens", "keys"), "increment.mindir": found}
    monkeypatch.setattr("msx_archiver.llm_serving.graphs.read_signature", lambda file: pair[Path(file).name])
    with pytest.raises(PackError, match=message) as refused:
        graph_pair(checked(given, "config.yaml"))
    assert FOLDER in str(refused.value)


def test_a_pair_of_one_text_whose_caches_are_parameters(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    found = signature("tokens", "batch_valid_length", operators=frozenset({"Assign"}))
    monkeypatch.setattr("msx_archiver.llm_serving.graphs.read_signature", lambda file: found)
    assert [file.name for file in graph_pair(checked(given, "config.yaml"))] == ["prefill.mindir", "increment.mindir"]


def test_a_file_of_mindspore_lite(tmp_path: Path, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    (tmp_path / "prefill.mindir").write_bytes(b"\x1c\0\0\0MSL2 and more")
    with pytest.raises(PackError, match=r"prefill_model: .*as a model of MindSpore Lite is none\. Serve the weights"):
        graph_pair(checked(given, "config.yaml"))


def test_a_tokenizer_in_another_form(given: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(PackError, match=r"tokenizer\.json is not there, .* of tokenizer\.model by transformers"):
        imported_model(checked(given, "config.yaml"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "is not a mapping of sections"),
        ("model_config: {}", "model_config.model_name: needed, and missing"),
        ("model_config: {model_name: m}\nserving_config: {server_port: 70000}", "expected a port from 1 to 65535"),
        ("model_config: {model_name: m, end_token: [1]}", "model_config.end_token"),
        ("a: [", "config.yaml"),
    ],
)
def test_a_wrong_yaml(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(PackError, match=message):
        read_config(tmp_path / "config.yaml")


def test_no_yaml(tmp_path: Path) -> None:
    with pytest.raises(PackError, match=r"--llm-serving: .*none.yaml: cannot be read"):
        read_config(tmp_path / "none.yaml")
