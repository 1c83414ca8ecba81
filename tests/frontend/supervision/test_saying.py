"""Lines of the supervisor, and the log to which frontends write."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from msx_frontend.supervision.saying import LOG_FILE

SAYS = """
import os, subprocess, sys
from msx_frontend.supervision.frontend_process import FrontendProcess
from msx_frontend.supervision.saying import say

say("one")
os.rename("log", "log.1")
say("two")  # no other log is there yet
open("log", "x").close()
say("three")
os.rename("log", "log.2")
open("log", "x").close()
FrontendProcess.start(sys.executable, ["--version"], {}).process.wait()
"""


def said(folder: Path, env: dict[str, str]) -> None:
    with (folder / "log").open("ab") as log:
        command = [sys.executable, "-c", SAYS]
        env = {**os.environ, **env}
        subprocess.run(command, cwd=folder, stdout=log, stderr=log, env=env, timeout=60, check=True)


def test_a_log_that_was_moved_aside_is_left(tmp_path: Path) -> None:
    said(tmp_path, {LOG_FILE: str(tmp_path / "log")})
    assert (tmp_path / "log.1").read_text() == "msx-serve: one\nmsx-serve: two\n"
    assert (tmp_path / "log.2").read_text() == "msx-serve: three\n"
    assert (tmp_path / "log").read_text().startswith("MSX Version is ")


def test_output_that_somebody_else_keeps_is_left_alone(tmp_path: Path) -> None:
    """In the foreground, whoever has started the server has its output."""
    said(tmp_path, {})
    text = (tmp_path / "log.1").read_text()
    assert text.startswith("msx-serve: one\nmsx-serve: two\nmsx-serve: three\nMSX Version is ")


def test_nothing_is_said_where_stderr_is_closed() -> None:
    """A supervisor that failed by that would end all of the server."""
    code = "from msx_frontend.supervision.saying import say; say('one'); print('said')"
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", code]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "said\n")
