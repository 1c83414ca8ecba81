"""What a start finds on its machine. In an upgrade it looks while the server before still answers."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from typing import NamedTuple

from msx_frontend.assembly.devices import FoundDevices
from msx_frontend.config import ServerConfig
from msx_frontend.environments.interpreter import Interpreter, default_interpreter


class Machine(NamedTuple):
    devices: FoundDevices
    interpreter: Interpreter
    """That of workers which need no other one."""

    @classmethod
    async def look(cls, config: ServerConfig, parts: AsyncExitStack) -> Machine:
        """Raises StartError."""
        devices = await FoundDevices.look(config)
        parts.push_async_callback(devices.close)
        return cls(devices, await default_interpreter(config.python, os.environ))
