"""Calls of plugins that end alone where a plugin would end the program."""

from collections.abc import Awaitable
from typing import Any

from msx_frontend.installed_plugins import reason


class Exited(Exception):
    """Stands for `sys.exit` in a plugin, which would end the loop."""


async def contained(call: Awaitable[Any]) -> Any:
    """Await the call. Raises Exited for `sys.exit` and KeyboardInterrupt."""
    try:
        return await call
    except (SystemExit, KeyboardInterrupt) as error:
        raise Exited(reason(error)) from None
