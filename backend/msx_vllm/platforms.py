"""Differences between the devices that vLLM computes on, and between its plug-ins for them: no other module of MSX asks
which they are, or names a plug-in."""

import importlib
import importlib.util
import logging
import os
from collections.abc import Mapping
from typing import Any, Protocol

from msx_sdk.errors import HandlerLoadError
from msx_vllm.cores import WorkerShare, thread_binding
from msx_vllm.memory import host_cache_bytes

log = logging.getLogger("msx.vllm")

PLUGINS = ("vllm_mindspore",)
"""Packages that put their own parts in the place of vLLM's, and must be imported before it. Others, as vllm-ascend, are
found by vLLM itself (the entry points `vllm.platform_plugins`)."""


class VllmPlatform(Protocol):
    """vLLM's `Platform`."""

    device_type: str
    device_control_env_var: str

    def is_cpu(self) -> bool: ...

    def is_sleep_mode_available(self) -> bool: ...


def import_plugins() -> None:
    """Import those that are installed. Called before vLLM is imported. Raises HandlerLoadError."""
    for name in PLUGINS:
        if importlib.util.find_spec(name) is None:
            continue
        try:
            importlib.import_module(name)
        except Exception as error:
            raise HandlerLoadError(f"the plug-in {name} of vLLM cannot be imported: {error}") from error


def settle(
    arguments: Any, given: Mapping[str, Any], share: WorkerShare, platform: VllmPlatform, *, leased: bool
) -> None:
    """Set the arguments and variables of an engine that follow from where it computes. `given`: arguments that the
    model has; `leased`: the server has given the worker devices. Raises HandlerLoadError for arguments that cannot be
    there."""
    if share.ranks > 1:
        arguments.distributed_executor_backend = "mp"  # processes of this machine, also where a Ray runs
    if arguments.enable_sleep_mode and not platform.is_sleep_mode_available():
        raise HandlerLoadError(
            f"vllm.enable_sleep_mode: vLLM has no sleep where it computes on {platform.device_type}: leave it out"
        )
    _check_devices(platform, leased=leased)
    if platform.is_cpu():
        _settle_host(arguments, given, share)


def _check_devices(platform: VllmPlatform, *, leased: bool) -> None:
    """Whether vLLM computes on the devices that the server has given to the worker."""
    if platform.is_cpu() and leased:
        log.warning(
            "the server has given this worker devices, and vLLM computes on the CPU: install its plug-in for them into "
            "the interpreter, or give deviceType: cpu"
        )
    if not platform.is_cpu() and platform.device_control_env_var not in os.environ:
        log.warning(
            "vLLM computes on %s and takes any of them: the server has given this worker none by %s",
            platform.device_type,
            platform.device_control_env_var,
        )


def _settle_host(arguments: Any, given: Mapping[str, Any], share: WorkerShare) -> None:
    compiles = not (arguments.enforce_eager or arguments.enable_lora)
    if arguments.pipeline_parallel_size > 1 and not compiles:
        raise HandlerLoadError(
            "vllm.pipeline_parallel_size: on a CPU vLLM divides layers only where it compiles: leave out "
            "vllm.enforce_eager and adapters, or give vllm.tensor_parallel_size instead"
        )
    os.environ.update(thread_binding(share, os.environ))
    if "kv_cache_memory_bytes" not in given:
        arguments.kv_cache_memory_bytes = host_cache_bytes(share.parts)
