"""`model_archiver.manifest_components.manifest`."""

from enum import Enum


class RuntimeType(Enum):
    PYTHON = "python"
    PYTHON3 = "python3"
    LSP = "LSP"
