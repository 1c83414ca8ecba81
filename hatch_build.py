"""Puts the commit that is built into the wheel and the sdist, for `msx-serve --version`."""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MODULE = Path("frontend", "msx_frontend", "commit.py")


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """An sdist has the note already. `MSX_COMMIT` says it where the build does not see the repository, as in an
        image."""
        commit = runpy.run_path(str(Path(self.root, MODULE)))
        said = os.environ.get("MSX_COMMIT") or commit["of_checkout"](Path(self.root))
        if version == "editable" or not said or Path(self.root, MODULE).with_name(commit["NOTE"]).exists():
            return
        self._folder = TemporaryDirectory()
        note = Path(self._folder.name, commit["NOTE"])
        note.write_text(f"{said}\n")
        note.chmod(0o644)
        place = MODULE.relative_to("frontend") if self.target_name == "wheel" else MODULE
        build_data["force_include"][str(note)] = str(place.with_name(note.name))
