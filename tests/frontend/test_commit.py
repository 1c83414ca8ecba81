"""Commit in `msx-serve --version`."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from msx_frontend import __version__
from msx_frontend.cli.main import main
from msx_frontend.commit import describe_commit, of_checkout

ROOT = Path(__file__).parents[2]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """`frontend/msx_frontend` of a tree without a repository."""
    folder = tmp_path / "frontend" / "msx_frontend"
    folder.mkdir(parents=True)
    return folder


def commit(root: Path) -> None:
    env = {"GIT_COMMITTER_DATE": "2026-11-27T23:59:00+08:00", "PATH": "/usr/bin:/bin"}
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    for arguments in (("init", "--quiet"), ("add", "."), (*identity, "commit", "--quiet", "--allow-empty", "-m", "A")):
        subprocess.run(["git", *arguments], cwd=root, env=env, check=True)


def test_the_option() -> None:
    done = CliRunner().invoke(main, ["--version"])
    assert done.stdout == f"MSX Version is {__version__} ({describe_commit()})\n"


def test_the_note_of_the_build_counts(package: Path) -> None:
    commit(package.parents[1])
    (package / "commit.txt").write_text("commit 6556503a of 2026-11-27\n")
    assert describe_commit(package) == "commit 6556503a of 2026-11-27"


def test_a_checkout_asks_git(package: Path) -> None:
    root = package.parents[1]
    commit(root)
    assert re.fullmatch("commit [0-9a-f]{8} of 2026-11-27", describe_commit(package))
    (root / "new").touch()
    assert describe_commit(package).endswith(" of 2026-11-27, with changes")


def test_where_nobody_knows(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert describe_commit(package) == "commit unknown"
    (package.parents[1] / ".git").mkdir()
    assert describe_commit(package) == "commit unknown", "a damaged repository"
    monkeypatch.setenv("PATH", "")
    assert of_checkout(ROOT) == "", "no git"


def test_the_version_stands_in_two_places() -> None:
    said = re.findall(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert said == [__version__]
