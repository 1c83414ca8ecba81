"""`ts.launcher`: start and stop a server from a script or a notebook."""

from __future__ import annotations

import json
import subprocess
import urllib.parse
import urllib.request
from typing import Any

MANAGEMENT = "http://127.0.0.1:8081"


def start(
    model_store: str | None = None,
    snapshot_file: str | None = None,
    no_config_snapshots: bool = False,
    plugin_folder: str | None = None,
    disable_token: bool = False,
    models: str | None = None,
    enable_model_api: bool = False,
) -> None:
    """Run `msx-serve --start`; returns when the server is up. Raises CalledProcessError."""
    options = {"--model-store": model_store, "--ts-config": snapshot_file, "--models": models}
    switches = {
        "--no-config-snapshots": no_config_snapshots,
        "--disable-token-auth": disable_token,
        "--enable-model-api": enable_model_api,
    }
    command = ["msx-serve", "--start"]
    command += [word for name, value in options.items() if value for word in (name, value)]
    command += [name for name, wanted in switches.items() if wanted]
    if plugin_folder:
        command += ["--plugins-path", plugin_folder]
    subprocess.run(command, check=True)


def stop(wait: bool = True) -> None:
    """Run `msx-serve --stop`, which waits in any case."""
    subprocess.run(["msx-serve", "--stop"], check=True)


def register_model(model_name: str, url: str) -> Any:
    return register_model_with_params(
        {"model_name": model_name, "url": url, "initial_workers": "1", "synchronous": "true"}
    )


def register_model_with_params(params: dict[str, str]) -> Any:
    """The reply's JSON. Raises urllib.error.HTTPError. Reaches a server without tokens on the usual port."""
    request = urllib.request.Request(f"{MANAGEMENT}/models?{urllib.parse.urlencode(params)}", method="POST")  # noqa: S310
    with urllib.request.urlopen(request) as reply:  # noqa: S310
        return json.load(reply)
