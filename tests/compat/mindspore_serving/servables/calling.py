"""Calls methods of a servable as a server does: an instance is a request with packed values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msx_core.packed import PACKED, pack, unpack
from msx_sdk.testing import InferenceRequest, LocalModel, Part
from tests.compat.mindspore_serving.packages.servables import write


def served(folder: Path, source: str, **config: Any) -> LocalModel:
    """The servable `add` with this source; a context manager."""
    return LocalModel("servable", write(folder, source), name="add", config={"servable": config})


def call(model: LocalModel, method: str, instances: Sequence[Mapping[str, Any]]) -> list[Any]:
    """For each instance its outputs, or the code and the message of its failure."""
    requests = [
        InferenceRequest(
            str(number),
            {name: Part(pack(value), PACKED) for name, value in instance.items()},
            operation=f"packed:{method}",
        )
        for number, instance in enumerate(instances)
    ]
    replies = model.predict(requests)
    return [
        unpack(reply.body) if reply.failure is None else (reply.failure.code, reply.failure.message)
        for reply in replies
    ]
