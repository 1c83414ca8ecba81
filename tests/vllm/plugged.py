"""A platform plug-in of vLLM, as the package of one would install it, and what MSX makes of it."""

from __future__ import annotations

from pathlib import Path

from msx_sdk.errors import HandlerLoadError
from msx_sdk.generation import SleepRequest
from msx_sdk.testing import LocalModel
from msx_vllm.cores import WorkerShare
from msx_vllm.handler import VllmHandler
from msx_vllm.platforms import settle
from tests.vllm.cases import Refusal, ask

SECTION = {"enforce-eager": True, "dtype": "float32", "kv-cache-memory-bytes": "64M", "max-num-seqs": 8}

PLATFORM = """\
import multiprocessing

import torch
from vllm.platforms.cpu import CpuPlatform
from vllm.platforms.interface import PlatformEnum

COMPUTES = multiprocessing.current_process().name != "MainProcess"


class FakePlatform(CpuPlatform):
    '''A device of its own to all but the processes that vLLM starts, which compute on the CPU.'''

    _enum = PlatformEnum.CPU if COMPUTES else PlatformEnum.OOT
    device_name = device_type = "cpu" if COMPUTES else "fake"
    device_control_env_var = "FAKE_VISIBLE_DEVICES"

    def uses_host_device_handling(self):
        return not COMPUTES

    def is_sleep_mode_available(self):
        return True

    @classmethod
    def check_and_update_config(cls, vllm_config):
        vllm_config.device_config.device_type = "cpu"
        vllm_config.device_config.device = torch.device("cpu")
        super().check_and_update_config(vllm_config)
        vllm_config.parallel_config.worker_cls = "fake_worker.FakeWorker"


def register():
    return "fake_platform.FakePlatform"
"""
WORKER = """\
from vllm.v1.worker.cpu_worker import CPUWorker


class FakeWorker(CPUWorker):
    kept, told = (), ()

    def sleep(self, level=1):
        self.told = (*self.told, f"sleep {level}")
        parameters = dict(self.model_runner.model.named_parameters())
        self.kept = {name: one.detach().clone() for name, one in parameters.items()} if level == 1 else {}
        for one in parameters.values():
            one.data.zero_()

    def wake_up(self, tags=None):
        self.told = (*self.told, f"wake {tags}")
        parameters = dict(self.model_runner.model.named_parameters())
        for name, value in self.kept.items():
            parameters[name].data.copy_(value)
        self.kept = {}

    def reload_weights(self, *args, **kwargs):
        self.told = (*self.told, "reload")
        super().reload_weights(*args, **kwargs)

    def what_was_told(self):
        return self.told
"""
TOLD = ["sleep 1", "wake None", "sleep 2", "wake ['weights']", "reload", "wake ['kv_cache']"]


def install_plugin(folder: Path) -> None:
    """Write the package to `folder`, which is to be on the path of the interpreter."""
    (folder / "fake_platform.py").write_text(PLATFORM)
    (folder / "fake_worker.py").write_text(WORKER)
    info = folder / "fake_platform-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-platform\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[vllm.platform_plugins]\nfake = fake_platform:register\n")


def plugged(folder: str) -> list[str]:
    """Differences from what holds on devices, where vLLM has found the plug-in."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.platforms import current_platform

    found, arguments = current_platform, AsyncEngineArgs(enable_sleep_mode=True)
    try:
        settle(arguments, {}, WorkerShare(0, 1, 2), found, leased=True)
    except HandlerLoadError as error:
        return [str(error)]
    differs = {
        "device": (found.device_type, "fake"),
        "memory": (arguments.kv_cache_memory_bytes, None),
        "executor": (arguments.distributed_executor_backend, "mp"),
    }
    return [f"{name}: {is_so}, not {wanted}" for name, (is_so, wanted) in differs.items() if is_so != wanted]


def greedy(folder: str) -> list[str]:
    """The text of an engine on the platform that vLLM finds."""
    with LocalModel(VllmHandler, folder, config={"vllm": SECTION}) as model:
        return [_text(model)]


def slept(folder: str) -> list[str]:
    """The device that an engine on the plug-in's platform describes, its text before it slept and after each sleep, and
    what its worker was told."""
    with LocalModel(VllmHandler, folder, config={"vllm": {**SECTION, "enable-sleep-mode": True}}) as model:
        handler, texts = model.handler.owner, [_text(model)]
        assert handler.capabilities().sleep
        for level in (1, 2):
            for wanted in (level, 0):
                model._loop.run_until_complete(handler.sleep(SleepRequest(level=wanted), model.context))
            texts.append(_text(model))
        (told,) = model._loop.run_until_complete(handler.llm._engine.collective_rpc("what_was_told"))
        return [handler.describe()["device"], *texts, *told]


def _text(model: LocalModel) -> str:
    found = ask(model, {"prompt": "the sea", "stream": False}, {"temperature": 0.0, "max_tokens": 16})
    return found.message if isinstance(found, Refusal) else found[0].text
