"""scripts/release, in a repository of one commit: what it builds, and what it refuses."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="in a clean environment with the extra dev it is there")

ROOT = Path(__file__).parents[2]
PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "msx-serve"
version = "{version}"
requires-python = ">=3.10"
[tool.hatch.build.hooks.custom]
[tool.hatch.build.targets.wheel]
only-include = ["frontend/msx_frontend"]
sources = ["frontend"]
"""
VENV = 'cd "$root"\nPATH="$root/../bin:$PATH"\n'
PYTHON = f"""#!/bin/sh
case "$1 $2" in
"-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
"-m pip") ;;
*) exec {sys.executable} "$@" ;;
esac
"""
"""Installs nothing."""
UNSTEADY = "\nimport time; (ROOT / 'frontend' / 'msx_frontend' / 'now.py').write_text(str(time.time_ns()))\n"


def git(repository: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ["git", "-C", str(repository), *identity, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def repository(folder: Path, version: str = "0.3.0") -> Path:
    made = folder / "msx"
    (made / "scripts").mkdir(parents=True)
    package = made / "frontend" / "msx_frontend"
    package.mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "release", made / "scripts")
    shutil.copy(ROOT / "hatch_build.py", made)
    shutil.copy(ROOT / "frontend" / "msx_frontend" / "commit.py", package)
    (package / "__init__.py").touch()
    (made / "pyproject.toml").write_text(PYPROJECT.format(version=version))
    (made / ".gitignore").write_text("dist/\n__pycache__/\n")
    (made / "scripts" / "_venv").write_text(VENV)
    (folder / "bin").mkdir()
    for path, text in ((folder / "bin" / "python", PYTHON), (made / "scripts" / "sbom", "#!/bin/sh\necho '{}'\n")):
        path.write_text(text)
        path.chmod(0o755)
    git(made, "init", "--quiet")
    commit(made)
    return made


def commit(repository: Path) -> None:
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "--message", "A commit")


def release(repository: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([repository / "scripts" / "release"], capture_output=True, text=True, check=False)


def test_what_is_released(tmp_path: Path) -> None:
    made = repository(tmp_path)
    done = release(made)
    assert done.returncode == 0, done.stderr
    names = ["msx_serve-0.3.0-py3-none-any.whl", "msx_serve-0.3.0.cdx.json", "msx_serve-0.3.0.tar.gz"]
    assert sorted(path.name for path in (made / "dist").iterdir()) == ["SHA256SUMS", *names]
    sums = dict(line.split()[::-1] for line in (made / "dist" / "SHA256SUMS").read_text().splitlines())
    assert sums == {name: hashlib.sha256((made / "dist" / name).read_bytes()).hexdigest() for name in names}
    assert json.loads((made / "dist" / names[1]).read_text()) == {}
    note = f"{git(made, 'log', '-1', '--abbrev=8', '--format=commit %h of %cs')}\n"
    with zipfile.ZipFile(made / "dist" / names[0]) as wheel:
        assert wheel.read("msx_frontend/commit.txt").decode() == note
    with tarfile.open(made / "dist" / names[2]) as sdist:
        noted = sdist.extractfile("msx_serve-0.3.0/frontend/msx_frontend/commit.txt")
        assert noted
        assert noted.read().decode() == note
    assert f'git tag --sign --message "MSX 0.3.0" v0.3.0 {git(made, "rev-parse", "HEAD")}' in done.stdout
    assert git(made, "tag") == ""


def test_a_version_of_development_gets_no_tag(tmp_path: Path) -> None:
    done = release(repository(tmp_path, "0.3.0.dev0"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("0.3.0.dev0 is a version of development: do not tag it")


def test_changes_that_are_not_committed_are_refused(tmp_path: Path) -> None:
    made = repository(tmp_path)
    (made / "new.py").touch()
    done = release(made)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"{made} has changes that are not committed: commit or remove them, because a release is built of a commit "
        "alone.\n"
    )
    assert not (made / "dist").exists()


def test_what_two_builds_make_differently_is_refused(tmp_path: Path) -> None:
    made = repository(tmp_path)
    hook = (made / "hatch_build.py").read_text()
    (made / "hatch_build.py").write_text(hook + UNSTEADY.replace("ROOT", "Path(__file__).parent"))
    commit(made)
    done = release(made)
    assert done.returncode == 1
    assert "differs from what a second build made" in done.stderr
    assert not (made / "dist").exists()
