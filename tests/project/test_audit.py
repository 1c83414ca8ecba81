"""The scripts that say what MSX is made of."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SKIPPED = {"name": "b", "skip_reason": "Dependency not found on PyPI and could not be audited: b (1)"}
WELL = {"name": "a", "version": "1", "vulns": []}
ILL = {"name": "c", "version": "3", "vulns": [{"id": "PYSEC-1", "fix_versions": ["4"]}]}
OURS = {"name": "msx-serve", "skip_reason": "distribution marked as editable"}


def audit(folder: Path, packages: list[dict[str, Any]] | None) -> subprocess.CompletedProcess[str]:
    """With a pip-audit that says this; None: it fails."""
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    tools = folder / ".venv-audit" / "bin"
    tools.mkdir(parents=True)
    (folder / "found").write_text(json.dumps({"dependencies": packages}))
    body = "exit 1" if packages is None else f'cat "{folder}/found" > "$4"'
    for name in ("pip-audit", "cyclonedx-py"):
        (tools / name).write_text(f"#!/bin/sh\n[ $PIPAPI_PYTHON_LOCATION = /bin/sh ] || exit 9\n{body}\n")
        (tools / name).chmod(0o755)
    return subprocess.run([folder / "scripts" / "audit", "/bin/sh"], capture_output=True, text=True)


@pytest.mark.parametrize(
    ("packages", "code", "said", "warned"),
    [
        ([WELL, OURS], 0, "1 packages, 1 looked up, 0 with known vulnerabilities.", ""),
        ([WELL, ILL], 1, "c 3: PYSEC-1, mended in 4\n2 packages, 2 looked up, 1 with", ""),
        ([WELL, SKIPPED], 2, "2 packages, 1 looked up", "NOT AUDITED, because the database does not know them: b."),
        ([SKIPPED], 2, "1 packages, 0 looked up", "NOTHING WAS AUDITED: the database of vulnerabilities (pypi.org)"),
        (None, 2, "0 packages", "NOTHING WAS AUDITED"),
    ],
)
def test_what_was_not_looked_up_is_not_healthy(
    tmp_path: Path, packages: list[dict[str, Any]] | None, code: int, said: str, warned: str
) -> None:
    done = audit(tmp_path, packages)
    assert done.returncode == code, done.stderr
    assert said in done.stdout
    assert warned in done.stderr


@pytest.mark.long
def test_the_list_of_all_packages() -> None:
    """Its tool validates it, and comes from PyPI."""
    done = subprocess.run([ROOT / "scripts" / "sbom"], capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    assert (document["bomFormat"], document["metadata"]["component"]["name"]) == ("CycloneDX", "msx-serve")
    versions = {one["name"].lower(): one["version"] for one in document["components"]}
    assert {"uvicorn", "msgspec", "grpcio"} <= versions.keys()
    assert all(versions.values())
