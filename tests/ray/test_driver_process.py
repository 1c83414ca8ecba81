"""The driver as a child process of the server."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from msx_ray.driver_process import DriverProcess
from msx_ray.messages import Unreachable
from tests.loops import run


def test_a_driver_that_fails_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its last line stands in the reason, which describe and /readyz show."""
    driver = tmp_path / "driver"
    driver.write_text("#!/bin/sh\necho Traceback\necho 'ConnectionError: no session folder.' >&2\nexit 1\n")
    driver.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(driver))

    async def test() -> None:
        told: asyncio.Queue[Any] = asyncio.Queue()
        process = DriverProcess([], told.put_nowait, lambda: None)
        process.start()
        try:
            assert await told.get() == Unreachable(
                "The process that talks to Ray ended with code 1 (ConnectionError: no session folder); "
                "it starts again after 1 s."
            )
        finally:
            await process.close()
        assert process.pid is None

    run(test())
