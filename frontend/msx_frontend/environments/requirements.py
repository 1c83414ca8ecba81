"""The requirements of an archive, and the key of their installation."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from msx_frontend.environments.interpreter import Interpreter

_NEEDS_ARCHIVE = re.compile(r"\s*(?:-[rce]\b|--(?:requirement|constraint|editable|find-links)\b|\.|file:)")
"""Lines that name other files, which may be in the archive."""


@dataclass(frozen=True)
class Requirements:
    """`file` lies in `model_dir`, whose content is `digest`; `venv`: a virtual environment rather than a folder."""

    file: Path
    model_dir: Path
    digest: str
    venv: bool
    interpreter: Interpreter

    def key(self) -> str:
        """40 hex digits, the same for requirements that install the same packages. Reads the file; raises OSError."""
        text = self.file.read_bytes().decode("utf-8", "replace")
        archive = self.digest if any(map(_NEEDS_ARCHIVE.match, text.splitlines())) else ""
        parts = ("venv" if self.venv else "folder", self.interpreter.path, self.interpreter.version, text, archive)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]
