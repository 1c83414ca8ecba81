"""From a wheel of before the first release to this checkout, and back again."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.e2e.server import run_server, server_environment
from tests.releases.arrangement import CONFIGURATION, arrange, pack_archives, served

pytest.importorskip("hatchling", reason="in a clean environment with the extra dev it is there")

ROOT = Path(__file__).parents[2]
OLD_COMMIT, OLD_VERSION = "6556503a", "0.1.0.dev0"
NAMED_VERSION = "pyproject.toml", "frontend/msx_frontend/__init__.py"


def known(commit: str) -> bool:
    command = ["git", "cat-file", "-e", f"{commit}^{{commit}}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


pytestmark = [
    pytest.mark.long,
    pytest.mark.e2e,
    pytest.mark.skipif(not known(OLD_COMMIT), reason=f"not a clone with the commit {OLD_COMMIT}"),
]


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of processes that run the older version, whose wheel is unpacked before this checkout."""
    source, installed = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    done = subprocess.run(["git", "archive", OLD_COMMIT], cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tree:
        tree.extractall(source)
    for path in (source / name for name in NAMED_VERSION):
        path.write_text(path.read_text().replace('"0.1.0"', f'"{OLD_VERSION}"', 1))
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(installed)]
    subprocess.run(build, cwd=source, capture_output=True, check=True)
    (wheel,) = installed.glob("*.whl")
    with zipfile.ZipFile(wheel) as plain:
        plain.extractall(installed)
    return {"PYTHONPATH": str(installed)}


def start(folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """A start that is expected to fail."""
    command = [sys.executable, "-m", "msx_frontend.cli.main", "--foreground", "--model-store", "store"]
    env = server_environment(folder, environment)
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)


def test_up_and_down_again(old: dict[str, str], tmp_path: Path) -> None:
    pack_archives(tmp_path, server_environment(tmp_path, old))
    with run_server(tmp_path, properties=CONFIGURATION, env=old, fork=False) as server:
        assert server.inference.get("/v2").json()["version"] == OLD_VERSION
        arrange(server)
        server.wait_serving()
        before = served(server)
    with run_server(tmp_path, properties=CONFIGURATION) as server:
        assert server.inference.get("/v2").json()["version"] != OLD_VERSION
        assert served(server) == before
    state = tmp_path / "store" / ".msx" / "state.db"
    refused = start(tmp_path, old)
    assert refused.returncode == 1
    assert "state.db was written by a newer MSX (schema 5, this one knows 3): upgrade, or restore" in refused.stderr
    shutil.copy(state.with_name("state-schema-3.db"), state)
    with run_server(tmp_path, properties=CONFIGURATION, env=old, fork=False) as server:
        assert served(server) == before
