"""The commands of pyproject.toml."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint, distribution

import pytest

SCRIPTS = list(distribution("msx-serve").entry_points.select(group="console_scripts"))
SHOW_HELP = """
import sys
before = set(sys.modules)
from {0.module} import {0.attr} as main
try:
    main(["--help"])
finally:
    print(*sorted(set(sys.modules) - before), sep="\\n", file=sys.stderr)
"""
SLOW = {"asyncio", "dataclasses", "importlib.metadata", "json", "logging", "socket", "subprocess"}


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.name for script in SCRIPTS])
def test_help_imports_nothing_slow(script: EntryPoint) -> None:
    """Python and click are nearly all of its time, and have to stay it."""
    done = subprocess.run([sys.executable, "-c", SHOW_HELP.format(script)], capture_output=True, text=True, check=True)
    modules = set(done.stderr.split())
    assert "Usage: " in done.stdout
    assert "click" in modules
    assert not modules & SLOW
    installed = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names
    assert installed == {"click", script.module.partition(".")[0]}
