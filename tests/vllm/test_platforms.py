"""Devices that vLLM computes on, and its plug-ins for them."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from msx_sdk.errors import HandlerLoadError
from msx_sdk.generation import SleepRequest
from msx_sdk.testing import LocalModel
from msx_vllm import platforms
from msx_vllm.cores import BIND, WorkerShare
from msx_vllm.handler import VllmHandler
from msx_vllm.memory import host_cache_bytes
from msx_vllm.platforms import import_plugins, settle

ALONE, FOUR = WorkerShare(0, 1, 1), WorkerShare(0, 1, 4)


class Fake:
    """A platform of a plug-in."""

    def __init__(self, kind: str, variable: str = "FAKE_VISIBLE_DEVICES") -> None:
        self.device_type, self.device_control_env_var = kind, variable

    def is_cpu(self) -> bool:
        return self.device_type == "cpu"

    def is_sleep_mode_available(self) -> bool:
        return not self.is_cpu()


CPU, NPU = Fake("cpu"), Fake("npu")


def arguments(**given: Any) -> Any:
    defaults = {
        "enforce_eager": False,
        "enable_lora": False,
        "enable_sleep_mode": False,
        "pipeline_parallel_size": 1,
        "kv_cache_memory_bytes": None,
        "distributed_executor_backend": None,
    }
    return SimpleNamespace(**{**defaults, **given})


def settled(platform: Fake, share: WorkerShare = ALONE, *, leased: bool = False, **given: Any) -> Any:
    made = arguments(**given)
    settle(made, given, share, platform, leased=leased)
    return made


@pytest.fixture(autouse=True)
def _here(here: Path) -> None:
    """Variables are taken back."""


def test_only_a_cpu_gets_memory_and_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    variables: dict[str, str] = {"FAKE_VISIBLE_DEVICES": "0"}
    monkeypatch.setattr("os.environ", variables)
    assert settled(NPU, FOUR, leased=True).kv_cache_memory_bytes is None
    assert BIND not in variables
    assert settled(CPU, FOUR).kv_cache_memory_bytes == host_cache_bytes(4)
    assert BIND in variables
    assert settled(CPU, kv_cache_memory_bytes=5).kv_cache_memory_bytes == 5


@pytest.mark.parametrize("platform", [CPU, NPU])
def test_several_ranks_are_processes_of_this_machine(platform: Fake) -> None:
    assert settled(platform, FOUR).distributed_executor_backend == "mp"
    assert settled(platform).distributed_executor_backend is None


def test_devices_that_vllm_does_not_compute_on_are_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settled(CPU)
    monkeypatch.setenv("FAKE_VISIBLE_DEVICES", "0")
    settled(NPU, leased=True)
    assert caplog.messages == []
    settled(CPU, leased=True)
    settled(Fake("npu", "OTHER_VISIBLE_DEVICES"), leased=True)
    assert [message.partition(":")[0] for message in caplog.messages] == [
        "the server has given this worker devices, and vLLM computes on the CPU",
        "vLLM computes on npu and takes any of them",
    ]


def test_sleep_is_refused_where_vllm_has_none() -> None:
    with pytest.raises(
        HandlerLoadError, match=r"^vllm\.enable_sleep_mode: vLLM has no sleep where it computes on cpu: "
    ):
        settled(CPU, enable_sleep_mode=True)
    assert settled(NPU, enable_sleep_mode=True).enable_sleep_mode


@pytest.mark.parametrize("uncompiled", ["enforce_eager", "enable_lora"])
def test_layers_are_divided_on_a_cpu_where_vllm_compiles(uncompiled: str) -> None:
    settled(CPU, FOUR, pipeline_parallel_size=4)
    settled(NPU, FOUR, pipeline_parallel_size=4, **{uncompiled: True})
    with pytest.raises(
        HandlerLoadError, match=r"^vllm\.pipeline_parallel_size: on a CPU vLLM divides layers only where"
    ):
        settled(CPU, FOUR, pipeline_parallel_size=4, **{uncompiled: True})


def test_plugins_that_change_vllm_are_imported_before_it(
    tmp_path: Path, stub: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platforms, "PLUGINS", ("not_installed", "fake_plugin"))
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "fake_plugin.py"
    file.write_text(
        "import sys\nassert 'vllm' not in sys.modules\nimport vllm.platforms\n"
        "vllm.platforms.current_platform.device_type = 'npu'\n"
    )
    with LocalModel(VllmHandler, tmp_path, config={"vllm": {"enable-sleep-mode": True}}) as model:
        assert model.handler.owner.describe()["device"] == "npu"
        assert model.handler.owner.capabilities().sleep
    del sys.modules["fake_plugin"]
    file.write_text("raise RuntimeError('no CANN')")
    with pytest.raises(HandlerLoadError, match="the plug-in fake_plugin of vLLM cannot be imported: no CANN"):
        import_plugins()


def test_a_vllm_without_a_name_that_is_needed_is_refused(stub: None, tmp_path: Path) -> None:
    import vllm.sampling_params

    del vllm.sampling_params.SamplingParams
    with (
        pytest.raises(HandlerLoadError, match=r"^--handler vllm needs vLLM 0\.32 or one like it: cannot import name"),
        LocalModel(VllmHandler, tmp_path),
    ):
        pass


def test_an_engine_sleeps_and_has_its_weights_again(stub: None, tmp_path: Path) -> None:
    with LocalModel(VllmHandler, tmp_path) as model:
        handler, engine = model.handler.owner, model.handler.owner.llm._engine
        assert not handler.capabilities().sleep

        async def levels(*wanted: int) -> list[int]:
            return [(await handler.sleep(SleepRequest(level=level), model.context)).level for level in wanted]

        assert model._loop.run_until_complete(levels(0, 1, 1, 2, 1, 0)) == [0, 1, 1, 2, 2, 0]
    assert engine.slept == [
        "sleep 1",
        "wake None",
        "sleep 2",
        "wake ['weights']",
        "reload_weights",
        "wake ['kv_cache']",
    ]
