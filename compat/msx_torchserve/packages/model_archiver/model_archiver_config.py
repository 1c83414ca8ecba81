"""`model_archiver.model_archiver_config`."""

from __future__ import annotations

import os
from argparse import Namespace
from dataclasses import dataclass, field, fields


@dataclass
class ModelArchiverConfig:
    """One field for each option of `msx-archiver`, with the same name."""

    model_name: str
    handler: str
    version: str
    serialized_file: str | None = None
    model_file: str | None = None
    extra_files: str | None = None
    runtime: str = "python"
    export_path: str = field(default_factory=os.getcwd)
    archive_format: str = "default"
    force: bool = False
    requirements_file: str | None = None
    config_file: str | None = None

    @classmethod
    def from_args(cls, args: Namespace) -> ModelArchiverConfig:
        return cls(**{one.name: getattr(args, one.name) for one in fields(cls)})
