"""`msx-serve plan`, with the process that has the arithmetic."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from msx_frontend.cli.main import main
from msx_frontend.cli.subcommands import planning
from tests.gguf_models import small, zeros
from tests.hub_server import HubServer, Repository, hub_server
from tests.llm.sizing.models import LLAMA_7B, folder_of

pytestmark = pytest.mark.usefixtures("forked_processes")


def planned(model: Path | str, *flags: str, npu: str = "910B4") -> Result:
    return CliRunner().invoke(main, ["plan", str(model), "--npu", npu, *flags])


def test_what_fits_is_a_table_of_80_columns(tmp_path: Path) -> None:
    done = planned(folder_of(tmp_path, LLAMA_7B), "--parallel", "pp2tp4", "--texts", "16")
    assert done.exit_code == 0, done.output
    assert max(map(len, done.stdout.splitlines())) <= 80
    for said in ("Estimate: llama, 6.74 billion", "stage 1", "memory bound; all-reduces", "It fits.", "estimates"):
        assert said in done.stdout


def test_what_does_not_fit_names_the_keys(tmp_path: Path) -> None:
    done = planned(folder_of(tmp_path, LLAMA_7B), "--texts", "64")
    assert done.exit_code == 1
    assert max(map(len, done.stdout.splitlines())) <= 80
    for said in ("It does not fit.", "missing", "-> slotBuckets: [8]", "-> maxTotalTokens: 512", "tensorParallel: 8"):
        assert said in done.stdout


def test_json_has_bytes_and_seconds(tmp_path: Path) -> None:
    done = planned(folder_of(tmp_path, LLAMA_7B), "--json", "--context", "1024")
    said = json.loads(done.stdout)
    assert (said["estimate"], said["fits"], said["context"]) == (True, True, 1024)
    assert said["ranks"][0]["weights"] == 2 * 6_738_415_616
    assert said["ranks"][0]["free"] > 0
    assert said["decode"]["memory"] > said["decode"]["compute"]


ASKED = ("--parallel", "tp2", "--context", "64", "--adapters", "4")


def test_a_draft_model_and_adapters_have_rows(tmp_path: Path) -> None:
    (small := tmp_path / "draft").mkdir()
    draft = folder_of(small, LLAMA_7B, num_hidden_layers=2) / "config.json"
    done = planned(folder_of(tmp_path, LLAMA_7B), *ASKED, "--draft", str(draft))
    assert done.exit_code == 0, done.output
    assert "  draft model" in done.stdout
    assert "weights and cache, on the first device" in done.stdout
    for said in ("tokens adapters", "speculative: {method: draft}", "adapters: {maxLoras: 4, maxRank: 64}"):
        assert said in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(("flag", "most"), [("--adapters", 64), ("--adapter-rank", 512)])
def test_no_more_than_a_server_takes(tmp_path: Path, flag: str, most: int) -> None:
    """As `adapters:` of model-config.yaml has it."""
    folder = folder_of(tmp_path, LLAMA_7B)
    assert "not in the range" not in planned(folder, "--context", "64", "--adapters", "1", flag, str(most)).output
    done = planned(folder, flag, str(most + 1))
    assert done.exit_code == 2
    assert f"{most + 1} is not in the range 1<=x<={most}" in done.output


def test_the_rank_of_no_adapters_is_refused(tmp_path: Path) -> None:
    done = planned(folder_of(tmp_path, LLAMA_7B), "--adapter-rank", "8")
    assert (done.exit_code, "--adapter-rank is that of each of --adapters: say how many." in done.stderr) == (2, True)


def test_one_file_and_an_archive_are_enough(tmp_path: Path) -> None:
    config = folder_of(tmp_path, LLAMA_7B) / "config.json"
    (tokenizer := tmp_path / "tokenizer.json").write_text("{}")
    extra = f"{config},{tokenizer}"
    archive = pack(
        PackOptions(model_name="x", version="1", handler="text_generation", extra_files=extra, export_path=tmp_path)
    )
    tables = {planned(model, "--context", "64").stdout for model in (config, archive)}
    assert len(tables) == 1
    assert "6.74 billion" in tables.pop()


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("nowhere", "cannot be read: No such file or directory. Give a folder with a config.json"),
        ("hf://a/b/c/d", "hf://a/b/c/d is not a URL of the form hf://"),
    ],
)
def test_what_is_not_a_model_is_told(model: str, said: str) -> None:
    done = planned(model)
    assert done.exit_code == 1
    assert said in done.stderr


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    with hub_server() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("NO_PROXY", "*")
        yield server


def test_of_a_hub_the_configuration_alone_is_read(hub: HubServer, tmp_path: Path) -> None:
    config = folder_of(tmp_path, LLAMA_7B) / "config.json"
    files = {"config.json": config.read_bytes(), "model.safetensors": b"x" * 20_000}
    hub.repositories["org/name"] = Repository(files)
    done = planned("hf://org/name", "--context", "64")
    assert done.stdout == planned(config, "--context", "64").stdout
    assert "6.74 billion" in done.stdout
    assert (len(hub.reads("config.json")), hub.reads("model.safetensors")) == (1, [])


@pytest.mark.parametrize(
    ("repository", "said"),
    [
        (None, "hf://org/name: the hub does not have it, or shows it only with another token (HF_TOKEN)."),
        (Repository({"README.md": b"x"}), "hf://org/name: it has no config.json of at most 1 MiB."),
        (Repository({"config.json": b"x" * ((1 << 20) + 1)}), "it has no config.json of at most 1 MiB."),
        (
            Repository({"config.json": b"{}"}, said_sizes={"config.json": 1}),
            "config.json has 1 bytes by the hub's listing, but 2 came.",
        ),
    ],
)
def test_what_a_hub_does_not_have_is_told(hub: HubServer, repository: Repository | None, said: str) -> None:
    if repository is not None:
        hub.repositories["org/name"] = repository
    done = planned("hf://org/name")
    assert done.exit_code == 1
    assert said in done.stderr


def test_a_hub_that_hangs_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*command: Any, **options: Any) -> None:
        raise subprocess.TimeoutExpired("plan", options["timeout"])

    monkeypatch.setattr(subprocess, "run", late)
    assert "hf://org/name: its hub has not sent config.json within 60 s." in planned("hf://org/name").stderr


def test_a_chip_that_is_refused_is_told(tmp_path: Path) -> None:
    done = planned(folder_of(tmp_path, LLAMA_7B), "--context", "64", npu="310P")
    assert done.exit_code == 1
    assert "It would not be loaded: Ascend310P: language models do not run on this chip" in done.stdout
    assert "It fits" not in done.stdout
    assert "model-config.yaml:" not in done.stdout


def test_unknown_npus_are_told_the_known_ones(tmp_path: Path) -> None:
    done = planned(folder_of(tmp_path, LLAMA_7B), npu="H100")
    assert done.exit_code == 1
    assert "known are 910B1, 910B2, 910B3, 910B4, 910C, 310P, cpu" in done.stderr


def test_an_archive_without_a_configuration_is_told(tmp_path: Path) -> None:
    handler = tmp_path / "handler.py"
    handler.write_text("")
    archive = pack(PackOptions(model_name="other", version="1.0", handler=str(handler), export_path=tmp_path))
    done = planned(archive)
    assert done.exit_code == 1
    assert "has no config.json of at most 1 MiB" in done.stderr


def test_a_gguf_file_is_a_model(tmp_path: Path) -> None:
    """Also one whose tokenizer nobody knows, or alone in its folder."""
    file = small(tmp_path / "m.gguf", {"tokenizer.ggml.pre": "brand-new"})
    for model in (file, tmp_path):
        done = planned(model, npu="cpu")
        assert done.exit_code == 0, done.output
        assert done.stdout.startswith("Estimate: llama, 0.00 billion parameters, float32")
    file = small(tmp_path / "m.gguf", tensors={"blk.0.ffn_up.weight": zeros((8, 32))})
    assert "model.layers.0.mlp.up_proj.weight has the shape" in planned(file, npu="cpu").stderr
    file = small(tmp_path / "m.gguf", {"general.architecture": "mamba"})
    assert "the architecture mamba is not read from GGUF" in planned(file, npu="cpu").stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ([sys.executable, "-c", "import nothing_such"], "No module named 'nothing_such': plan needs the packages of"),
        ([sys.executable, "-c", "input()"], "it ended with exit code 0, and has said nothing: this is a bug of MSX"),
        ([sys.executable, "-c", "1 / 0"], "ZeroDivisionError: division by zero: this is a bug of MSX"),
    ],
)
def test_a_process_that_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], said: str
) -> None:
    monkeypatch.setattr(planning, "_COMMAND", command)
    done = planned(folder_of(tmp_path, LLAMA_7B))
    assert done.exit_code == 1
    assert said in done.stderr


def test_a_process_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*command: Any, **options: Any) -> None:
        raise subprocess.TimeoutExpired("plan", options["timeout"])

    monkeypatch.setattr(subprocess, "run", late)
    done = planned(folder_of(tmp_path, LLAMA_7B))
    assert done.exit_code == 1
    assert "not made within 60 s" in done.stderr


def test_neither_the_command_nor_its_arithmetic_imports_mindspore(tmp_path: Path) -> None:
    code = "import sys; import msx_frontend.cli.subcommands.planning, msx_llm.sizing.__main__"
    subprocess.run([sys.executable, "-c", f"{code}; sys.exit('mindspore' in sys.modules)"], check=True)
