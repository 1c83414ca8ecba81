import os
import subprocess
import sys
from pathlib import Path

import pytest

from msx_frontend.assembly.pid_file import NAME, PidFile


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setenv("TEMP", str(tmp_path))
    return tmp_path / NAME


def test_it_is_there_for_as_long_as_the_server(path: Path) -> None:
    file = PidFile()
    file.write()
    assert path.read_text() == str(os.getpid())
    file.remove()
    assert not path.exists()


@pytest.mark.parametrize("text", ["999999999", "nonsense", "", "-5", str(1 << 70)])
def test_what_a_killed_server_left_is_replaced(path: Path, text: str) -> None:
    path.write_text(text)
    PidFile().write()
    assert path.read_text() == str(os.getpid())


def test_what_was_left_is_replaced_though_a_later_process_has_its_number(path: Path) -> None:
    path.write_text(str(os.getppid()))
    os.utime(path, (1, 1))
    PidFile().write()
    assert path.read_text() == str(os.getpid())


def test_what_was_left_is_replaced_though_nobody_has_waited_for_the_killed_server(path: Path) -> None:
    killed = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, killed.pid, os.WEXITED | os.WNOWAIT)
    path.write_text(str(killed.pid))
    PidFile().write()
    assert path.read_text() == str(os.getpid())
    killed.wait()


def test_that_of_another_server_stays(path: Path) -> None:
    path.write_text("1")
    file = PidFile()
    file.write()
    file.remove()
    assert path.read_text() == "1"


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    path.symlink_to(tmp_path / "precious")
    PidFile().write()
    assert (tmp_path / "precious").read_text() == "mine"
    assert path.read_text() == str(os.getpid())


def test_where_it_cannot_be_written_there_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TEMP", str(tmp_path / "absent"))
    file = PidFile()
    file.write()
    file.remove()


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"TMPDIR": "/a", "TEMP": "/b", "TMP": "/c"}, "/a"),
        ({"TEMP": "/b", "TMP": "/c"}, "/b"),
        ({"TMPDIR": "", "TMP": "/c"}, "/c"),
        ({}, "/tmp"),
    ],
)
def test_its_folder_is_that_of_pythons_temporary_files(variables: dict[str, str], folder: str) -> None:
    assert PidFile(variables).path == Path(folder) / NAME


def test_the_server_that_wrote_it(path: Path) -> None:
    assert PidFile().server() is None
    PidFile().write()
    assert PidFile().server() == os.getpid()
    os.utime(path, (1, 1))
    assert PidFile().server() is None, "this process began later than the file was written"
    for other in ("999999999", "-5", str(1 << 70)):
        path.write_text(other)
        assert PidFile().server() is None
