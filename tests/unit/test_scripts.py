"""The commands of pyproject.toml, and what a start imports when."""

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


def imported(*modules: str) -> set[str]:
    code = f"import {', '.join(modules)}, sys; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_start_in_the_background_imports_no_server() -> None:
    """The server's own start comes after it."""
    modules = imported("msx_frontend.commands", "msx_frontend.launch", "msx_frontend.config", "msx_frontend.instance")
    assert not modules & {"asyncio", "msx_frontend.server", "msx_frontend.models.registry", "yaml"}


def test_server_imports_grpc_while_the_first_workers_start() -> None:
    modules = imported("msx_frontend.server", "msx_frontend.lifecycle")
    assert not modules & {"cryptography", "google.protobuf", "grpc", "httpx", "mindspore", "numpy", "rich", "torch"}
