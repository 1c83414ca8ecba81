"""Messages of a start on its terminal."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from msx_frontend.cli.launch import run_in_foreground
from tests.frontend.config.test_set_flags import options


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_a_mistyped_key_is_told_on_the_terminal_of_the_foreground(
    stream: io.StringIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere the log has it."""
    file = tmp_path / "ts.properties"
    file.write_text("job_queue_sise=7\n")

    def ran(server: Coroutine[Any, Any, None]) -> None:
        server.close()

    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(uvloop, "run", ran)
    assert run_in_foreground(options(ts_config=file, model_store=tmp_path)) == 0
    told = "job_queue_sise: is not a known key and is ignored; did you mean job_queue_size?" in stream.getvalue()
    assert told is stream.isatty()
