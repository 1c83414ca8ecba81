"""`ts.launcher`: start and stop a server from a script or a notebook."""

import re
import subprocess
import sys
from pathlib import Path
from queue import Queue
from typing import Any

import httpx

from msx_core.module_command import module_command

from ._following import LogTail

MANAGEMENT = "http://localhost:8081"
PROGRAM = tuple(module_command(sys.executable, "msx_frontend.cli.main"))
"""`msx-serve`, found also if no environment is active."""

REGISTER_LIMIT = 3600.0
"""Seconds that loading a model may take."""

LINES = 1000
"""The most lines in the queue; further lines are dropped, as in TorchServe."""


def start(
    model_store: str | None = None,
    snapshot_file: str | None = None,
    no_config_snapshots: bool = False,
    plugin_folder: str | None = None,
    disable_token: bool = False,
    models: str | None = None,
    enable_model_api: bool = False,
) -> Queue[str | None]:
    """Stop the server that runs, start another, and return when it answers.

    The queue gets the lines of its log from then on, which are printed, too, and None when it has ended. It does not
    end with this program. A store that is not there is printed, and the queue has None, as with TorchServe. Raises
    CalledProcessError for a server that does not start otherwise, having printed why.
    """
    if model_store and not Path(model_store).is_dir():
        return _no_store(model_store)
    if model_store:
        subprocess.run([*PROGRAM, "--stop", "--model-store", model_store], check=False, stdout=subprocess.DEVNULL)
    stop()
    options = {
        "--model-store": model_store,
        "--ts-config": snapshot_file,
        "--plugins-path": plugin_folder,
        "--models": models,
    }
    switches = {
        "--no-config-snapshots": no_config_snapshots,
        "--disable-token-auth": disable_token,
        "--enable-model-api": enable_model_api,
    }
    command = [*PROGRAM, "--start"]
    command += [word for name, value in options.items() if value for word in (name, value)]
    command += [name for name, wanted in switches.items() if wanted]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="", flush=True)  # noqa: T201  # what the command says is for the script's user
    return _followed(done.stdout)


def stop(wait: bool = True) -> None:
    """Stops the running server, if there is one, and waits for its end."""
    subprocess.run([*PROGRAM, "--stop"], check=False)


def register_model(model_name: str, url: str) -> httpx.Response:
    return register_model_with_params(
        {"model_name": model_name, "url": url, "initial_workers": "1", "synchronous": "true"}
    )


def register_model_with_params(params: Any) -> httpx.Response:
    """The reply: `status_code`, `text`, `json()`. Reaches a server without tokens on the usual port."""
    with httpx.Client(trust_env=False, timeout=REGISTER_LIMIT) as client:
        return client.post(f"{MANAGEMENT}/models", params=params)


def _no_store(store: str) -> Queue[str | None]:
    stop()
    print(f"--model-store directory not found: {store}", flush=True)  # noqa: T201  # as TorchServe's launcher
    queue: Queue[str | None] = Queue(LINES)
    queue.put(None)
    return queue


def _followed(said: str) -> Queue[str | None]:
    queue: Queue[str | None] = Queue(LINES)
    pid, log = re.search(r"\(pid (\d+)\)", said), re.search(r"^ +log +(.+)$", said, re.MULTILINE)
    if pid and log:
        LogTail(Path(log[1]), int(pid[1]), queue).start()
    return queue
