"""Start scripts of MindSpore Serving, run as their users do, and the proof that nothing is left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.e2e.server import WATCHDOG, server_environment, wait_until
from tests.processes import alive, children_of

READY = "print('READY', flush=True)\n"
"""The end of a script: what it starts has been started."""

BEGIN = "import sys\nfrom mindspore_serving import server\n"


class RunningScript:
    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.folder, self.process = folder, process
        self.server_killed = False
        """Another server, or `--status`, removes what it says of itself in the index."""

    @property
    def out(self) -> str:
        return (self.folder / "out.txt").read_text()

    @property
    def err(self) -> str:
        return (self.folder / "err.txt").read_text()

    @property
    def log(self) -> str:
        path = self.folder / "serving_logs" / "msx.log"
        return path.read_text() if path.exists() else ""

    def everything(self) -> str:
        return f"{self.out}\n{self.err}\n{self.log[-6000:]}"

    def wait_for(self, line: str) -> None:
        """Until the script has printed it."""

        def printed() -> bool:
            assert line in self.out or self.process.poll() is None, self.everything()
            return line in self.out

        wait_until(printed, f"the script prints {line}", self.everything)

    def wait_ready(self) -> None:
        self.wait_for("READY")

    @property
    def below(self) -> list[psutil.Process]:
        """Its server, and that one's workers."""
        return children_of(self.process.pid, recursive=True)

    def server(self) -> psutil.Process:
        return children_of(self.process.pid)[0]

    def end(self, how: int = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(WATCHDOG)


@contextmanager
def run_script(
    folder: Path, text: str, *arguments: str, command: Sequence[str] = (), env: dict[str, str] | None = None
) -> Iterator[RunningScript]:
    """`text` is that of the script, `serving_server.py` in the folder; `command` runs it, or else Python. Asserts at
    the end that nothing is left."""
    (folder / "serving_server.py").write_text(text)
    full = [*(command or [sys.executable]), "serving_server.py", *arguments]
    with open(folder / "out.txt", "wb") as out, open(folder / "err.txt", "wb") as err:
        process = subprocess.Popen(
            full, cwd=folder, stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=server_environment(folder, env)
        )
    running = RunningScript(folder, process)
    seen: list[psutil.Process] = []
    try:
        yield running
        seen = running.below
    finally:
        seen = seen or running.below
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(WATCHDOG)
            finally:
                process.kill()
    nothing_left(running, seen)


def nothing_left(script: RunningScript, processes: Sequence[psutil.Process]) -> None:
    wait_until(lambda: not alive(processes), f"the processes {processes} have ended", script.everything)
    temp = script.folder / "temp"
    wait_until(lambda: not os.listdir(temp), f"temporary files are gone: {os.listdir(temp)}", script.everything)
    left = [path for path in script.folder.rglob("*") if path.is_socket() or path.name in ("key_file.json", "state.db")]
    assert not left, left
    index = script.folder / "index" / "msx-serve" / "servers"
    assert script.server_killed or not index.exists() or not list(index.iterdir()), list(index.iterdir())
