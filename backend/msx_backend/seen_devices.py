"""Compares the devices that a worker's torch sees with those that the server gave it."""

import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from msx_core.torch_devices import TorchDevices

log = logging.getLogger("msx.worker")


class SeenDevices:
    """Made before the handler is imported, because a handler may change the variables."""

    def __init__(self, kinds: Sequence[TorchDevices]) -> None:
        self._kinds = [(kind, os.environ.get(kind.visible)) for kind in kinds if not kind.simulated]

    def compare(self) -> None:
        """Log a WARNING for each difference. Torch is asked only where the handler has imported it."""
        torch = sys.modules.get("torch")
        for kind, before in self._kinds:
            devices = getattr(torch, kind.module, None)
            with suppress(AttributeError):  # a module of the handler's that only looks like torch
                if devices is not None and (difference := _difference(torch, devices, kind, before)):
                    log.warning("%s", difference)


def _difference(torch: Any, devices: Any, kind: TorchDevices, before: str | None) -> str:
    """A sentence without its full stop; "" where there is none.

    A worker whose devices are hidden is not asked for them: that takes time, and may start the driver in it.
    """
    now = os.environ.get(kind.visible)
    if kind.given and not (devices.is_initialized() or devices.is_available()):
        return _sees_none(torch, kind, now)
    if now != before and devices.device_count():
        return (
            f"the handler has changed {kind.visible} from {_shown(before)} to {_shown(now)}, so that it may use a "
            f"{kind.title} that the server did not give this worker, and that others have. Leave the variable as it "
            "is: deviceIds in model-config.yaml chooses devices, parallelLevel says how many"
        )
    if not kind.given and now != "" and (count := devices.device_count()):
        return (
            f"torch sees {_number(count, kind)} that the server did not give this worker: it found none, or was told "
            "to use others (accelerator), so that nobody counts who uses them. `msx-serve doctor` says why. Start the "
            f"server with an empty {kind.visible} if models are not to use them"
        )
    return ""


def _sees_none(torch: Any, kind: TorchDevices, visible: str | None) -> str:
    built_for = getattr(torch.version, kind.module, None)
    cause = (
        f"it was built for {kind.module} {built_for}, which the driver may be too old for: install a newer driver, or "
        "a torch for this one"
        if built_for
        else f"it was built without {kind.module}: install a torch with it where the workers run"
    )
    return (
        f"torch {torch.__version__} does not see the {_number(kind.given, kind)} that the server gave this worker "
        f"({kind.visible}={visible}), so that the model computes on the CPU; {cause}. `msx-serve doctor` shows both. "
        "With deviceType: cpu in model-config.yaml the worker gets none"
    )


def _number(count: int, kind: TorchDevices) -> str:
    return f"{count} {kind.title}{'s' if count != 1 else ''}"


def _shown(value: str | None) -> str:
    return "unset" if value is None else repr(value)
