"""A server in the conditions of a pod: the image's environment, and one folder that it can write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.confined import confined
from tests.deploy.command_line import image_environment
from tests.e2e.server import WATCHDOG, wait_until
from tests.processes import alive, children_of

PORTS = {f":{port}": ":0" for port in (8080, 8081, 8082)} | {f"port={port}": "port=0" for port in (7070, 7071)}
"""Free ones for those of the image."""


@contextmanager
def running(container: Mapping[str, Any], folder: Path, places: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Run the server of the container, whose listeners have free ports; yields its own description. `places` are
    folders of this machine for those of the container; `/state` is `folder/state`, the only one that can be written.

    At the end: it stops by SIGTERM, with the exit code 0, and nothing is left.
    """
    state = folder / "state"
    state.mkdir()
    args = [replaced(argument, {**places, "=/state": f"={state}", **PORTS}) for argument in container["args"]]
    assert args.pop(0) == "msx-serve"  # the word for the image's entry point, which adds --foreground
    own = {one["name"]: one["value"] for one in container.get("env", ())}
    env = {**image_environment(), "PATH": os.environ["PATH"], **own}
    command = [*_reader(state), sys.executable, "-m", "msx_frontend.cli.main", "--foreground", *args]
    log = (folder / "server.log").open("w+")
    process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
    try:
        info = json.loads(wait_until(lambda: _read(process, state / "server.json"), "it answers", lambda: _tail(log)))
        for name in ("inference", "management", "metrics", "grpc_inference"):
            info[name] = info[name].replace("0.0.0.0", "127.0.0.1")
        ready = lambda: httpx.get(f"{info['inference']}/readyz").status_code == 200  # noqa: E731
        wait_until(ready, "it is ready", lambda: _tail(log))
        below = children_of(process.pid, recursive=True)
        yield info
        process.terminate()
        assert process.wait(WATCHDOG) == 0, _tail(log)
        wait_until(lambda: not alive(below), "nothing is left", lambda: _tail(log))
        assert not {"run", "server.json"} & {path.name for path in state.iterdir()}
    finally:
        process.kill()
        process.wait()
        log.close()


def _reader(state: Path) -> list[str]:
    """Root makes everything else read-only for it, as the cluster does; others only mean it."""
    return confined(state) if os.geteuid() == 0 else []


def replaced(text: str, by: dict[str, str]) -> str:
    for old, new in by.items():
        text = text.replace(old, new)
    return text


def _read(process: subprocess.Popen[bytes], path: Path) -> str:
    assert process.poll() is None, "the server has ended"
    return path.read_text() if path.exists() else ""


def _tail(log: Any) -> str:
    log.seek(0)
    return str(log.read())[-6000:]
