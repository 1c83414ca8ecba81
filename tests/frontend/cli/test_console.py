"""Who has a console that the server goes on writing to."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from msx_frontend.cli.console import copied_to_console, handed_on, has_console
from msx_frontend.supervision.frontend_command import CONSOLE_FD

ME = 100


def process(proc: Path, pid: int, parent: int, stdout: str, **reads: str) -> None:
    """`reads` are other descriptors, all for reading but those that begin with w."""
    folder = proc / str(pid)
    for name in ("fd", "fdinfo"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "stat").write_text(f"{pid} (a ) b) S {parent} 1 1 0 -1")
    for fd, target, flags in [("1", stdout, "02000001")] + [
        (name, target, "0100001" if name.startswith("w") else "0100000") for name, target in reads.items()
    ]:
        (folder / "fd" / fd).symlink_to(target)
        (folder / "fdinfo" / fd).write_text(f"pos:\t0\nflags:\t{flags}\nmnt_id:\t15\n")


@pytest.mark.parametrize(
    ("key", "parent", "stdout", "first", "expected"),
    [
        (None, 1, "pipe:[7]", "pipe:[7]", True),  # an entry point's shell, which is process 1
        (None, 1, "/var/log/serve", "pipe:[7]", True),  # … and sends it elsewhere
        (None, 50, "pipe:[7]", "pipe:[7]", True),  # below an init
        (None, 50, "/dev/pts/0", "pipe:[7]", False),  # a user at a terminal
        (True, 50, "/dev/pts/0", "pipe:[7]", True),
        (False, 1, "pipe:[7]", "pipe:[7]", False),
        (None, 50, "/dev/null", "/dev/null", False),  # a machine's own init
        (True, 50, "/dev/null", "pipe:[7]", False),
    ],
)
def test_who_has_a_console(
    tmp_path: Path, key: bool | None, parent: int, stdout: str, first: str, expected: bool
) -> None:
    process(tmp_path, 1, 0, first)
    process(tmp_path, 50, 1, "pipe:[7]", w4=stdout)
    process(tmp_path, ME, parent, stdout)
    assert has_console(key, tmp_path, ME) is expected


@pytest.mark.parametrize("reader", [1, 50, 60])
@pytest.mark.parametrize("key", [None, True])
def test_a_caller_that_waits_for_the_end_of_our_output(tmp_path: Path, reader: int, key: bool | None) -> None:
    """`$(…)`, also of a shell further above, and `capture_output=True`."""
    for pid, parent in ((1, 0), (50, 1), (60, 50)):
        process(tmp_path, pid, parent, "pipe:[9]", **({"3": "pipe:[9]"} if pid == reader else {}))
    process(tmp_path, ME, 60, "pipe:[9]")
    assert has_console(key, tmp_path, ME) is False


def test_what_cannot_be_known(tmp_path: Path) -> None:
    """No /proc; no stdout; processes of others."""
    assert has_console(True, tmp_path, ME) is False
    process(tmp_path, ME, 50, "pipe:[9]")
    assert has_console(None, tmp_path, ME) is False
    assert has_console(True, tmp_path, ME) is True


def test_handed_on_to_the_server() -> None:
    with handed_on(False) as (fds, env):
        assert (fds, env) == ([], {})


@pytest.mark.usefixtures("with_console")
def test_a_copy_of_stdout_is_handed_on() -> None:
    with handed_on(None) as (fds, env):
        assert env == {CONSOLE_FD: str(fds[0])}
        assert os.path.samestat(os.fstat(fds[0]), os.fstat(1))
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(fds[0])


@pytest.mark.usefixtures("with_console")
def test_a_command_without_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(fd: int) -> int:
        raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr(os, "dup", closed)
    with handed_on(None) as (fds, env):
        assert (fds, env) == ([], {})


def test_in_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own stdout and stderr go there, too; its workers do not get the descriptor."""
    fd = os.open(tmp_path / "console", os.O_WRONLY | os.O_CREAT)
    os.set_inheritable(fd, True)
    own, errors = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", own)
    monkeypatch.setattr(sys, "stderr", errors)
    monkeypatch.setenv(CONSOLE_FD, str(fd))
    with copied_to_console(os.environ.copy()):
        assert not os.get_inheritable(fd)
        assert CONSOLE_FD not in os.environ
        print("said")
        print("wrong", file=sys.stderr)
    assert (sys.stdout, sys.stderr) == (own, errors)
    assert (own.getvalue(), errors.getvalue()) == ("said\n", "wrong\n")
    assert (tmp_path / "console").read_text() == "said\nwrong\n"


def test_in_a_server_without_a_console() -> None:
    own = sys.stdout
    with copied_to_console({}):
        assert sys.stdout is own


@pytest.fixture
def with_console(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msx_frontend.cli.console.has_console", lambda wanted: True)
