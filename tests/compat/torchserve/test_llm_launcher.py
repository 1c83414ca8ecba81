"""`ts.llm_launcher`: the folder that it makes and the server that it starts; tests/e2e has the real server."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
import yaml

from msx_core.manifest import MANIFEST_PATH
from msx_torchserve.packages.ts import llm_launcher
from tests.hub_server import Repository, hub_server


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The arguments of the server, and what stood in the model's folder while it ran; it ends by itself."""
    seen: dict[str, Any] = {}

    def start(store: str, **options: Any) -> Queue[str | None]:
        seen.update(options, store=store, folder=folder_of(Path(store) / options["models"]))
        queue: Queue[str | None] = Queue()
        queue.put(None)
        return queue

    handler = signal.getsignal(signal.SIGTERM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(llm_launcher, "start", start)
    monkeypatch.setattr(llm_launcher, "stop", lambda wait: seen.update(stopped=True))
    yield seen
    signal.signal(signal.SIGTERM, handler)


def folder_of(folder: Path) -> dict[str, Any]:
    config = yaml.safe_load((folder / "model-config.yaml").read_text())
    return {"config": config, "manifest": (folder / MANIFEST_PATH).is_file(), "files": sorted(listed(folder / "model"))}


def listed(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_a_folder(started: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "config.json").touch()
    flags = ["--model_id", "tiny", "--model_name", "m", "--vllm_engine.max_model_len", "250", "--disable_token_auth"]
    assert llm_launcher.main(flags) == 1
    assert started["folder"] == {
        "config": {
            "minWorkers": 1,
            "maxWorkers": 1,
            "batchSize": 1,
            "maxBatchDelay": 100,
            "responseTimeout": 1200,
            "startupTimeout": 1200,
            "deviceType": "gpu",
            "asyncCommunication": True,
            "handler": {
                "model_path": "model",
                "vllm_engine_config": {"max_num_seqs": 256, "max_model_len": 250},
            },
        },
        "manifest": True,
        "files": ["config.json"],
    }
    options = {name: started[name] for name in ("store", "no_config_snapshots", "models", "disable_token", "stopped")}
    assert options == {
        "store": "model_store",
        "no_config_snapshots": True,
        "models": "m",
        "disable_token": True,
        "stopped": True,
    }
    assert listed(tmp_path / "model_store") == []
    assert listed(tmp_path / "tiny") == ["config.json"]


def test_flags_of_another_store_and_time(started: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "tiny").mkdir()
    flags = [
        "--model_id",
        "tiny",
        "--model_store",
        "mine",
        "--startup_timeout",
        "30",
        "--vllm_engine.max_num_seqs",
        "4",
    ]
    llm_launcher.main([*flags, "--engine", "vllm"])
    config = started["folder"]["config"]
    assert (started["store"], started["models"], started["disable_token"]) == ("mine", "model", False)
    assert (config["startupTimeout"], config["handler"]["vllm_engine_config"]["max_num_seqs"]) == (30, 4)


def test_flags_of_tensorrt_have_no_effect(started: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "tiny").mkdir()
    llm_launcher.main(["--model_id", "tiny"])
    plain = started["folder"]
    flags = ["--dtype", "float16", "--trt_llm_engine.max_batch_size", "9"]
    llm_launcher.main(["--model_id", "tiny", *flags, "--trt_llm_engine.kv_cache_free_gpu_memory_fraction", "0.5"])
    assert started["folder"] == plain


def test_every_device_has_a_part(started: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "tiny").mkdir()
    (tmp_path / "config.properties").write_text("simulate_devices=2\n")
    llm_launcher.main(["--model_id", "tiny"])
    config = started["folder"]["config"]
    assert (config["parallelType"], config["parallelLevel"]) == ("custom", 2)
    assert config["handler"]["vllm_engine_config"]["tensor_parallel_size"] == 2


def test_a_model_of_the_hub(started: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hub_server() as hub:
        hub.repositories["org/tiny"] = Repository(
            {"config.json": b"{}", "model.safetensors": b"", "tokenizer.json": b"{}"}
        )
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        monkeypatch.setenv("NO_PROXY", "*")
        (tmp_path / "config.properties").write_text(f"state_dir={tmp_path / 'state'}\n")
        llm_launcher.main(["--model_id", "org/tiny", "--vllm_engine.download_dir", "downloads"])
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(started["folder"]["files"])
    assert started["folder"]["config"]["handler"]["vllm_engine_config"]["served_model_name"] == ["org/tiny"]
    assert started["disable_token"] is False
    assert (tmp_path / "downloads").is_dir()


def test_a_model_that_no_hub_has(started: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.properties").write_text(f"state_dir={tmp_path / 'state'}\nhub_offline=true\n")
    assert llm_launcher.main(["--model_id", "org/none"]) == 1
    assert "org/none" in capsys.readouterr().err
    assert started == {}


def test_a_folder_of_the_store_is_served_and_kept(started: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "model_store" / "m"
    (folder / "MAR-INF").mkdir(parents=True)
    (folder / "model").mkdir()
    (folder / "model-config.yaml").write_text("{}")
    llm_launcher.main(["--model_name", "m"])
    assert started["folder"]["config"] == {}
    assert folder.is_dir()


@pytest.mark.parametrize(
    ("engine", "said"), [("trt_llm", "TensorRT-LLM is not served here"), ("other", "invalid choice")]
)
def test_other_engines_are_refused(
    started: dict[str, Any], capsys: pytest.CaptureFixture[str], engine: str, said: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        llm_launcher.main(["--engine", engine])
    assert said in " ".join(capsys.readouterr().err.split())
    assert started == {}
