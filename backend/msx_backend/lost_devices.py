"""Errors after which a process cannot use its devices any more.

A kernel that fails on a GPU (an assertion, an illegal address) breaks the process's CUDA context: each later call fails
like the first one, until the process ends. Running out of memory, or an argument that torch refuses, does not.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from msx_backend.parallel.peers import wait_for_the_server
from msx_backend.replies import ReplyWriter, utf8
from msx_core.failures import shortened, text_of, without_addresses
from msx_core.torch_devices import TorchDevices
from msx_protocol import Broken

MOST_CAUSES = 8
"""How many exceptions of a chain are looked at: a handler may raise its own because of torch's."""
LONGEST_ERROR = 300
"""Characters of an error's text in the reason."""


class LostDevices:
    """Lets the server replace the worker after such an error of its handler. Called with each exception of it."""

    def __init__(self, kinds: Sequence[TorchDevices], replies: ReplyWriter) -> None:
        self._kinds, self._replies = kinds, replies
        self.serving = False
        """While the model is loaded, an error is a load that failed."""

    def __call__(self, error: BaseException) -> None:
        if self.serving and (reason := self._reason(error)):
            self._replies.send(Broken(utf8(reason)))
            wait_for_the_server()

    def _reason(self, error: BaseException) -> str:
        """A sentence without its full stop; "" where the devices can be used, as after most errors."""
        torch = sys.modules.get("torch")
        for kind in self._kinds:
            devices = getattr(torch, kind.module, None)
            cause = next((one for one in _chain(error) if kind.module in text_of(one).lower()), None)
            if cause is not None and devices is not None and _broken(devices):
                return f"no call of torch.{kind.module} in its process succeeds after {_first_line(cause)}"
        return ""


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(MOST_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _broken(devices: Any) -> bool:
    """Whether a device that this process uses fails without being given work: twice, because the first call may only
    report what an earlier kernel did."""
    try:
        used = _used(devices) if devices.is_initialized() else []
    except AttributeError:
        return False  # it is not torch's module
    except RuntimeError:
        return True
    return any(all(_fails(devices, device) for _ in range(2)) for device in used)


def _used(devices: Any) -> list[int]:
    """The current device, and those that hold memory. Others are not asked: torch would begin to use them."""
    current = devices.current_device()
    others = (device for device in range(devices.device_count()) if device != current)
    return [current, *(device for device in others if devices.memory_reserved(device))]


def _fails(devices: Any, device: int) -> bool:
    try:
        devices.synchronize(device)
    except RuntimeError:
        return True
    return False


def _first_line(error: BaseException) -> str:
    """Leave out torch's advice for developers, which the log has."""
    text = without_addresses(shortened(text_of(error).strip().partition("\n")[0].rstrip("."), LONGEST_ERROR))
    return f"{type(error).__name__}: {text}"
