"""Flags of `msx-serve`, before anything is started."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from msx_frontend.cli.main import COMPLETE, main
from msx_frontend.cli.subcommands.group import WORDS, words

ROOT = Path(__file__).parents[3]
ACTIONS = ("--start", "--stop", "--status", "--backup=copy", "--version")


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(ACTIONS, 2)))
def test_a_command_does_one_thing(first: str, second: str) -> None:
    """`--start --stop` did what came last."""
    done = CliRunner().invoke(main, [first, second])
    assert done.exit_code == 2
    assert " exclude each other: give one of them." in done.stderr
    assert first.partition("=")[0] in done.stderr
    assert second.partition("=")[0] in done.stderr


def test_the_same_twice_is_once() -> None:
    done = CliRunner().invoke(main, ["--version", "-v"])
    assert (done.exit_code, done.stdout[:15]) == (0, "MSX Version is ")


@pytest.mark.parametrize("flag", ["--disable-token", "--enable", "--fore", "--no-config", "--log=x", "--wait-t=1"])
def test_a_unique_beginning_of_a_flag_is_the_flag(flag: str) -> None:
    done = CliRunner().invoke(main, ["--vers", flag])
    assert (done.exit_code, done.stdout[:15]) == (0, "MSX Version is ")


@pytest.mark.parametrize("flag", ["--plugins-path", "--ppath"])
def test_a_folder_of_plugins_has_two_flags(flag: str, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    words = [sys.executable, "-m", "msx_frontend.cli.main", "--foreground", "--model-store", "store", flag, "absent"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "absent" in done.stderr


def test_what_is_unique_among_torchserves_flags_is_one_of_them() -> None:
    """`--status` and `--state-dir` begin so, too."""
    done = CliRunner().invoke(main, ["--version", "--sta"])
    assert "--version and --start exclude each other" in done.stderr


@pytest.mark.parametrize("flag", ["--st", "--stat", "--mod"])
def test_a_beginning_of_several_flags_is_refused(flag: str) -> None:
    assert CliRunner().invoke(main, ["--version", flag]).exit_code == 2


# -- msx-serve examples DIR --


def test_examples_are_copied_once(tmp_path: Path) -> None:
    to = tmp_path / "new" / "msx"
    done = CliRunner().invoke(main, ["examples", str(to)])
    assert (done.exit_code, done.stderr) == (0, "")
    assert sorted(path.name for path in to.iterdir()) == ["docs", "examples", "model-configs"]
    for name in ("examples/llama/model.safetensors", "model-configs/streaming.yaml", "docs/handlers.md"):
        assert (to / name).read_bytes() == (ROOT / name).read_bytes()
    (to / "docs" / "handlers.md").write_text("mine")
    again = CliRunner().invoke(main, ["examples", str(to)])
    assert (again.exit_code, again.stdout) == (1, "")
    assert again.stderr == (
        f"{to / 'examples'} already exists, nothing was copied: name another folder, or move it away.\n"
    )
    assert (to / "docs" / "handlers.md").read_text() == "mine"


def test_examples_cannot_be_copied(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = CliRunner().invoke(main, ["examples", str(tmp_path / "file" / "msx")])
    assert done.exit_code == 1
    assert done.stderr.startswith(f"The examples cannot be copied to {tmp_path}/file/msx: ")


@pytest.mark.parametrize("args", [["examples"], ["examples", "a", "b"], ["examples", "--stop", "a"]])
def test_examples_want_one_folder(args: list[str]) -> None:
    done = CliRunner().invoke(main, args)
    assert done.exit_code == 2
    assert "Usage: " in done.stderr


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("msx-serve sta", "status"),
        ("msx-serve doc", "doctor"),
        ("msx-serve logs --fo", "--follow"),
        ("msx-serve --foreg", "--foreground"),
    ],
)
def test_lines_are_completed(line: str, expected: str) -> None:
    env = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), COMPLETE: "bash_complete"}
    done = CliRunner().invoke(main, [], prog_name="msx-serve", env=env)
    assert f"plain,{expected}" in done.stdout.splitlines()


@pytest.mark.parametrize("word", WORDS)
def test_each_word_has_help(word: str) -> None:
    done = CliRunner().invoke(main, [word, "--help"])
    assert done.exit_code == 0
    assert f"{word} [OPTIONS]" in done.stdout
    assert f"  {word}" in CliRunner().invoke(words, ["--help"]).stdout


def test_the_help_lists_each_word() -> None:
    told = CliRunner().invoke(main, ["--help"]).stdout
    listed = told.partition("Words instead of flags")[2].partition("`msx-serve doctor`")[0]
    assert {*WORDS, "doctor"} <= set(listed.replace(",", " ").split())


def test_a_folder_of_a_words_name_is_served_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "status").mkdir()
    done = CliRunner().invoke(main, ["./status"])
    assert "status cannot be served: it has neither handler.py" in done.stderr
