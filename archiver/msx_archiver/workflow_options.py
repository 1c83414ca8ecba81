"""The options of torch-workflow-archiver."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class WorkflowOptions:
    """One field for each option of `msx-workflow-archiver`, with the same name.

    `extra_files` is a comma-separated list. `output` is the archive's path, in place of `export_path` and the
    workflow's name.
    """

    workflow_name: str
    spec_file: str
    handler: str | None = None
    extra_files: str | None = None
    export_path: Path = field(default_factory=Path.cwd)
    output: Path | None = None
    force: bool = False
