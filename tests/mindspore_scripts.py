"""Scripts that use MindSpore, without a second in which another process imports it."""

from __future__ import annotations

import io
import runpy
import subprocess
import sys
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import pytest


def run_mindspore(script: Path, *arguments: str, folder: Path) -> str:
    """Run it in `folder`, in this process if that has imported MindSpore; returns its output.

    It must leave MindSpore's mode as it is: behind a change launching is not blocking any more.
    """
    if "mindspore" not in sys.modules:
        command = [sys.executable, str(script), *arguments]
        return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    return _run_here(script, arguments, folder)


def _run_here(script: Path, arguments: tuple[str, ...], folder: Path) -> str:
    """Later tests do not see the modules beside the script."""
    known, paths, printed = set(sys.modules), set(sys.path), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"mindspore\.")
        patch.chdir(folder)
        patch.setattr(sys, "argv", [str(script), *arguments])
        patch.setattr(sys, "path", [str(script.parent), *sys.path])
        runpy.run_path(str(script), run_name="__main__")
        own = tuple({*sys.path} - paths)
    for name in {*sys.modules} - known:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(own):
            del sys.modules[name]
    return printed.getvalue()
