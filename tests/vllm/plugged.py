"""A platform plug-in of vLLM, as the package of one would install it, and what MSX makes of it."""

from __future__ import annotations

from pathlib import Path

from msx_sdk.errors import HandlerLoadError
from msx_vllm.cores import WorkerShare
from msx_vllm.platforms import settle

PLATFORM = """\
from vllm.platforms.interface import Platform, PlatformEnum


class FakePlatform(Platform):
    _enum = PlatformEnum.OOT
    device_name = device_type = "fake"
    dispatch_key = "CPU"
    device_control_env_var = "FAKE_VISIBLE_DEVICES"

    def is_sleep_mode_available(self):
        return True


def register():
    return "fake_platform.FakePlatform"
"""


def install_plugin(folder: Path) -> None:
    """Write the package to `folder`, which is to be on the path of the interpreter."""
    (folder / "fake_platform.py").write_text(PLATFORM)
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
