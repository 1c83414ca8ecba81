"""Archives of the handlers in tests/services/ts, laid out as torch-model-archiver lays them out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.torch_archiver import torch_archive

SERVICES = Path(__file__).parents[2] / "services" / "ts"


def archive_of(
    service: str,
    store: Path,
    *,
    name: str = "",
    config: str = "",
    files: dict[str, bytes | str] | None = None,
    archive_format: str = "default",
    **model: Any,
) -> Path:
    """`model` are keys of the manifest; the handler is the file itself unless they say another."""
    content: dict[str, bytes | str] = {f"{service}.py": (SERVICES / f"{service}.py").read_text(), **(files or {})}
    if config:
        content["model-config.yaml"] = config
        model["configFile"] = "model-config.yaml"
    model = {"handler": f"{service}.py", **model}
    return torch_archive(store, name or service, content, archive_format=archive_format, **model)
