"""`msx-serve link-names DIR`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from msx_frontend.cli.main import main
from msx_frontend.cli.subcommands.linking import NAMES, made_links


def test_the_commands_run_by_torchserves_names(tmp_path: Path) -> None:
    for _ in range(2):
        done = CliRunner().invoke(main, ["link-names", str(tmp_path / "bin")])
        assert (done.exit_code, done.stderr) == (0, "")
    said = subprocess.run([tmp_path / "bin" / "torchserve", "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("MSX Version is ")
    assert {path.name for path in (tmp_path / "bin").iterdir()} == NAMES.keys()


def test_nothing_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "torch-model-archiver").write_text("mine")
    done = CliRunner().invoke(main, ["link-names", str(tmp_path)])
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        f"{tmp_path}/torch-model-archiver is there already, nothing was linked: remove it, or name another folder.\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["torch-model-archiver"]


def test_an_environment_without_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert made_links(tmp_path / "bin", tmp_path) == 1
    assert (
        capsys.readouterr().err
        == f"{tmp_path}/msx-serve is not there: install msx-serve into this environment first.\n"
    )


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = CliRunner().invoke(main, ["link-names", str(tmp_path / "file" / "bin")])
    assert done.exit_code == 1
    assert done.stderr.startswith(f"No links can be made in {tmp_path}/file/bin: ")
