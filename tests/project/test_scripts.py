"""The commands of pyproject.toml, and what a start imports when."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint, distribution
from pathlib import Path

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
ROOT = Path(__file__).parents[2]
LEFT_BY_EXAMPLES = """
digits/build/digits.mindir digits/digits.mar llama/llama.mar matmul/build/matmul.safetensors
matmul/model/device0/matmul.mindir
matmul/rank_0/om qwen/checkpoint/model.safetensors qwen/qwen.mar plugin/plugins/msx_example_plugin.py
plugin/snapshots.json
workflow/reviews.war workflow/mood.mar workflow/.msx/state.db workflow/key_file.json workflow/logs/config/startup.cfg
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
    assert installed - {"msx_core"} == {"click", script.module.partition(".")[0]}


def imported(*modules: str) -> set[str]:
    code = f"import {', '.join(modules)}, sys; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_start_in_the_background_imports_no_server() -> None:
    """The server's own start comes after it."""
    modules = imported(
        "msx_frontend.cli.commands", "msx_frontend.cli.launch", "msx_frontend.config", "msx_frontend.assembly.instance"
    )
    assert not modules & {"asyncio", "msx_frontend.assembly.server", "msx_frontend.models.registry", "yaml"}


def test_server_imports_grpc_while_the_first_workers_start() -> None:
    modules = imported(
        "msx_frontend.assembly.server", "msx_frontend.assembly.lifecycle", "msx_mindspore_serving.family.api"
    )
    assert not modules & {
        "cryptography",
        "google.protobuf",
        "grpc",
        "httpx",
        "mindspore",
        "msx_frontend.archives.hub",
        "numpy",
        "ray",
        "rich",
        "torch",
    }


@pytest.mark.skipif(not (ROOT / ".git").exists() or shutil.which("git") is None, reason="not a clone")
def test_what_examples_leave_is_ignored() -> None:
    paths = [f"examples/{path}" for path in LEFT_BY_EXAMPLES.split()]
    done = subprocess.run(["git", "check-ignore", *paths], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == paths


def said(terminal: bool) -> bytes:
    """By the demo's own lines, which a terminal shows in bold."""
    lines = (ROOT / "scripts" / "demo").read_text()
    found = re.search(r"^bold=.*?^say\(\).*?\n", lines, re.DOTALL | re.MULTILINE)
    assert found
    command = ["sh", "-c", f"{found[0]}say hello"]
    if not terminal:
        return subprocess.run(command, capture_output=True, check=True).stdout
    master, slave = pty.openpty()
    subprocess.run(command, stdout=slave, check=True)
    os.close(slave)
    with os.fdopen(master, "rb", buffering=0) as screen:
        return screen.read(100)


def test_the_demo_writes_no_escapes_into_a_file() -> None:
    assert said(terminal=False) == b"\nhello\n"
    assert said(terminal=True) == b"\r\n\x1b[1mhello\x1b[0m\r\n"
