"""The copy of the log for a console: nothing waits for it, and what it misses is counted."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator

import pytest

from msx_frontend.logs.console import Console, CopiedStream

SOON = 120.0


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The console is given the writing end, and closes it."""
    read, write = os.pipe()
    yield read, write
    os.close(read)


def everything(read: int) -> str:
    parts = list[bytes]()
    while part := os.read(read, 1 << 20):
        parts.append(part)
    return b"".join(parts).decode()


def test_all_that_is_written_arrives(pipe: tuple[int, int], caplog: pytest.LogCaptureFixture) -> None:
    read, write = pipe
    console, stream = Console(write), io.StringIO()
    copied = CopiedStream(stream, console)
    assert copied.write("one\n") == 4
    copied.write("zw\u00f6lf \udc80\n")
    copied.flush()
    console.close(SOON)
    assert everything(read) == "one\nzw\u00f6lf \\udc80\n"
    assert stream.getvalue() == "one\nzw\u00f6lf \udc80\n"
    assert not copied.isatty()
    assert not caplog.records


def test_what_does_not_fit_is_dropped_and_counted(pipe: tuple[int, int], caplog: pytest.LogCaptureFixture) -> None:
    """The pipe is full, so that the first line cannot leave; the second waits; the others find no room."""
    read, write = pipe
    filled = _filled(write)
    console = Console(write, most_bytes=10)
    for line in ("first\n", "2nd\n", "third\n", "4\n5\n"):
        console.write(line)
    os.read(read, filled)
    _until_told(caplog)
    assert caplog.messages == ["The console was read too late: 3 lines of the log were not copied to it."]
    console.write("again\n")
    console.close(SOON)
    assert everything(read) == "first\n2nd\nagain\n"


def test_a_console_that_is_never_read_ends_nothing(pipe: tuple[int, int], caplog: pytest.LogCaptureFixture) -> None:
    read, write = pipe
    filled = _filled(write)
    console = Console(write, most_bytes=12)
    for line in ("first\n", "other\n", "third\n"):
        console.write(line)
    console.close(limit=0.0)
    assert caplog.messages == ["The console was not read: 3 lines of the log were not copied to it."]
    os.read(read, filled)  # ends the thread
    console._thread.join(SOON)


def test_a_console_in_non_blocking_mode(pipe: tuple[int, int]) -> None:
    """The mode belongs to all who share it: the caller may have set it."""
    read, write = pipe
    os.set_blocking(write, False)
    console = Console(write)
    console.write("x" * 300_000 + "\n")
    ending = threading.Thread(target=console.close, args=(SOON,))
    ending.start()
    assert len(everything(read)) == 300_001
    ending.join()


def test_a_console_that_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    read, write = os.pipe()
    os.close(read)
    console = Console(write)
    console.write("lost\n")
    console._thread.join(SOON)
    assert caplog.messages == ["The server has stopped copying its log to the console: Broken pipe."]
    console.write("lost\n")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(write)


def _filled(write: int) -> int:
    os.set_blocking(write, False)
    size = 0
    try:
        while True:
            size += os.write(write, b"." * 4096)
    except BlockingIOError:
        os.set_blocking(write, True)
        return size


def _until_told(caplog: pytest.LogCaptureFixture) -> None:
    while not caplog.messages:
        os.sched_yield()
