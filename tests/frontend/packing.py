"""Archives of the services in tests/services."""

from __future__ import annotations

from pathlib import Path

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from tests.backend.harness import SERVICES


def pack_model(
    folder: Path, model: str = "m", version: str = "1.0", *, service: str = "echo", config: str = ""
) -> Path:
    """`folder/model.mar`; `config` is the text of its model-config.yaml."""
    folder.mkdir(exist_ok=True)
    config_file = folder.parent / f"{model}-{version}.yaml"
    config_file.write_text(config)
    options = PackOptions(
        model_name=model,
        version=version,
        handler=str(SERVICES / f"{service}.py"),
        config_file=str(config_file) if config else None,
        export_path=folder,
        force=True,
    )
    return pack(options)
