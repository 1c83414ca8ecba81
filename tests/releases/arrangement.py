"""State that a server of any release keeps, and one of today must serve: archives, configuration, state."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.e2e.server import RunningServer, new_store
from tests.wars import CHAIN, MODELS, NODE

ECHO = Path(__file__).parents[1] / "services" / "echo.py"
CONFIGURATION = """\
default_response_timeout=60
default_workers_per_model=1
job_queue_size=50
max_request_size=1000000
cors_allowed_origin=https://example.org
models={"configured": {"1.0": {"marName": "configured.mar", "batchSize": 4, "maxBatchDelay": 20}}}
"""
MODEL_CONFIGURATION = """\
minWorkers: 1
maxWorkers: 2
batchSize: 2
maxBatchDelay: 10
responseTimeout: 33
custom: {words: [one, two]}
"""


def pack_archives(folder: Path, environment: dict[str, str]) -> None:
    """By the release that is on the path of this environment, into `folder/store`."""
    new_store(folder)
    (folder / "model-config.yaml").write_text(MODEL_CONFIGURATION)
    (folder / "chain.yaml").write_text(MODELS.replace("  m2:\n    url: m2.mar\n", "") + CHAIN)
    _pack(folder, environment, "--model-name", "echo", "--version", "2.0", "--handler", str(ECHO))
    (folder / "store" / "echo.mar").rename(folder / "store" / "next.mar")
    _pack(folder, environment, "--model-name", "echo", "--version", "1.0", "--handler", str(ECHO))
    configured = ("--model-name", "configured", "--version", "1.0", "--config-file", "model-config.yaml")
    _pack(folder, environment, *configured, "--handler", str(ECHO))
    _pack(folder, environment, "--model-name", "m1", "--version", "1.0", "--handler", str(NODE))
    workflow = ("--workflow-name", "chain", "--spec-file", "chain.yaml", "--handler", str(NODE))
    _pack(folder, environment, *workflow, module="msx_archiver.workflow_cli")


def arrange(server: RunningServer) -> None:
    """Changes of every kind that a state keeps."""
    done = [
        server.register(Path("echo.mar")),
        server.register(Path("next.mar"), model_name="echo", batch_size=4, response_timeout=44),
        server.register(Path("configured.mar")),
        server.register(Path("echo.mar"), model_name="idle", initial_workers=0),
        server.management.put("/models/echo/1.0?min_worker=2&max_worker=3&synchronous=true"),
        server.management.put("/models/echo/2.0/set-default"),
        server.management.put("/models/echo/traffic", json={"1.0": 90, "2.0": 10}),
        server.management.post("/workflows?url=chain.war"),
    ]
    assert [reply.status_code for reply in done] == [200] * len(done), [reply.text for reply in done]


def served(server: RunningServer) -> dict[str, Any]:
    """Facts that must be the same with every later release."""
    found: dict[str, Any] = {}
    for model in server.management.get("/models").json()["models"]:
        name = model["modelName"]
        kept = ("modelUrl", "minWorkers", "maxWorkers", "batchSize", "maxBatchDelay", "responseTimeout")
        found[name] = {
            "default": server.describe(name)["modelVersion"],
            "traffic": server.management.get(f"/models/{name}/traffic").json().get("weights"),
            "versions": {one["modelVersion"]: {key: one[key] for key in kept} for one in server.versions(name)},
        }
    answers = [server.predict(name, b"the same").text for name in ("echo", "configured")]
    chain = server.inference.post("/wfpredict/chain", content="x", headers={"content-type": "text/plain"})
    return {"models": found, "answers": [*answers, chain.text]}


def _pack(folder: Path, environment: dict[str, str], *options: str, module: str = "msx_archiver.cli") -> None:
    command = [sys.executable, "-m", module, *options, "--export-path", "store"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
