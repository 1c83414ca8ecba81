"""The options of torch-model-archiver."""

from dataclasses import dataclass, field
from pathlib import Path

RANK = "{rank}"


@dataclass(frozen=True, kw_only=True)
class PackOptions:
    """One field for each option of `msx-archiver`, with the same name; see docs/archives.md.

    `extra_files` is a comma-separated list, `serialized_file` may hold `{rank}`, `handler` may end in `:function`, and
    is empty for a model whose config file has stages. `output` is the archive's path, in place of `export_path` and the
    model's name.
    """

    model_name: str
    handler: str = ""
    version: str = "1.0"
    serialized_file: str | None = None
    model_file: str | None = None
    extra_files: str | None = None
    requirements_file: str | None = None
    config_file: str | None = None
    python: Path | None = None
    """Interpreter of the model's workers; None: the archiver's own."""
    runtime: str = "python"
    export_path: Path = field(default_factory=Path.cwd)
    output: Path | None = None
    archive_format: str = "default"
    force: bool = False
