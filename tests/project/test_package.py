"""The wheel and the sdist, without the source tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="in a clean environment with the extra dev it is there")

ROOT = Path(__file__).parents[2]
RUN = """
import sys
sys.path.insert(0, {wheel!r})
from msx_frontend.cli import main as cli
assert cli.__file__.startswith({wheel!r}), cli.__file__
cli.main(["examples", {to!r}])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    """Built from the sdist, as PyPI's users build it."""
    folder = tmp_path_factory.mktemp("built")
    build(ROOT, "sdist", folder)
    shutil.unpack_archive(next(folder.glob("*.tar.gz")), folder)  # the first releases of 3.11 have no filters
    (source,) = (path for path in folder.iterdir() if path.is_dir())
    for name in ("LICENSE", "NOTICE", "CHANGELOG.md", "tests/conftest.py", "scripts/demo"):
        assert (source / name).is_file(), name
    build(source, "wheel", folder)
    return zipfile.Path(next(folder.glob("*.whl")))


def build(source: Path, target: str, to: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(to)]
    subprocess.run(command, cwd=source, capture_output=True, check=True)


def tracked(*folders: str) -> set[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_wheel_has_the_pages_of_the_console(wheel: zipfile.Path) -> None:
    static = "msx_frontend/apis/console/static/"
    names = {name.removeprefix(static) for name in wheel.root.namelist() if name.startswith(static)}
    assert {"console.html", "console/main.js", "shared/api.js", "shared/theme.css", "shared/icon.svg"} <= names


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a clone")
def test_the_wheel_has_what_git_has(wheel: zipfile.Path) -> None:
    names = {name for name in wheel.root.namelist() if ".dist-info/" not in name and name[-1] != "/"}
    packages = (
        "sdk/msx_core", "sdk/msx_sdk", "sdk/msx_client", "archiver/msx_archiver",
        "compat/msx_torchserve", "compat/msx_mindspore_serving", "backend/msx_protocol",
        "backend/msx_backend", "backend/msx_llm", "backend/msx_vllm",
        "frontend/msx_net", "frontend/msx_frontend", "frontend/msx_ray",
    )  # fmt: skip
    code = {name.partition("/")[2] for name in tracked(*packages)}
    shipped = {f"msx_frontend/shipped/{name}" for name in tracked("examples", "model-configs", "docs")}
    assert names == {*code, *shipped, "msx_compat.pth", "msx_frontend/commit.txt"}


def test_the_metadata(wheel: zipfile.Path) -> None:
    (info,) = (path for path in wheel.iterdir() if path.name.endswith(".dist-info"))
    metadata = (info / "METADATA").read_text()
    for line in ("Author: The MSX Authors", "License-Expression: Apache-2.0", "License-File: NOTICE"):
        assert f"\n{line}\n" in metadata
    assert "Copyright 2026 The MSX Authors" in (info / "licenses" / "NOTICE").read_text()


def test_the_wheel_alone_copies_its_examples(wheel: zipfile.Path, tmp_path: Path) -> None:
    installed, to = tmp_path / "installed", tmp_path / "msx"
    with zipfile.ZipFile(str(wheel.root.filename)) as plain:  # that of a Path knows folders that are not in the file
        plain.extractall(installed)
    code = RUN.format(wheel=str(installed), to=str(to))
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, check=True)
    assert (to / "examples" / "llama" / "model.safetensors").is_file()
    assert (to / "model-configs" / "streaming.yaml").is_file()
