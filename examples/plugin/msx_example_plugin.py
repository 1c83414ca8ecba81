"""Two plugins: SageMaker's /execution-parameters, and snapshots in one JSON file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msx_sdk.plugins import Endpoint, EndpointRequest, SavedSnapshot

MIB = 1 << 20


class ExecutionParameters(Endpoint):
    """Execution parameters that SageMaker's batch transform asks a container for."""

    path = "execution-parameters"
    description = "Execution parameters of SageMaker's batch transform"

    def do_get(self, request: EndpointRequest) -> dict[str, Any]:
        workers = sum(model.min_workers for model in self.server.models() if model.is_default)
        return {
            "MaxConcurrentTransforms": max(workers, 1),
            "BatchStrategy": "MULTI_RECORD",
            "MaxPayloadInMB": int(self.server.config["max_request_size"]) // MIB,
        }


class JsonFile:
    """Snapshots as one JSON object, by their names; SNAPSHOT_FILE says where."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._path = Path(os.environ.get("SNAPSHOT_FILE", "snapshots.json"))

    def save(self, snapshot: SavedSnapshot) -> None:
        saved = {snapshot.name: snapshot.properties, **self._read()}
        aside = self._path.with_suffix(".tmp")
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(saved, file, indent=2)
        aside.replace(self._path)

    def get(self, name: str) -> SavedSnapshot:
        return SavedSnapshot(name, self._read()[name])

    def get_last(self) -> SavedSnapshot | None:
        names = self._read()
        return self.get(max(names)) if names else None

    def _read(self) -> dict[str, dict[str, str]]:
        if not self._path.exists():
            return {}
        found: dict[str, dict[str, str]] = json.loads(self._path.read_text())
        return found
