"""The cause of a crash, out of what is left of it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from msx_frontend.workers.crash_cause import MOST_AFTER, CrashCause


def words(text: str) -> str:
    last = CrashCause()
    for line in text.splitlines():
        last.add(line)
    return str(last)


def test_the_last_line_that_says_something() -> None:
    assert words("") == ""
    assert words("one\n  two\n\n   \n") == "two"


DUMP = """\
Fatal Python error: Aborted

Thread 0x00007f5e9ed206c0 (most recent call first):
  File "/lib/threading.py", line 327 in wait

Current thread 0x00007f5e9fc1bb80 (most recent call first):
  File "/model/net.py", line 12 in forward
  File "/model/h.py", line 5 in handle

Extension modules: numpy.core._multiarray_umath, msgspec._core (total: 2)
"""


def test_a_fault_is_named_with_its_place() -> None:
    assert words(DUMP) == "Fatal Python error: Aborted at /model/net.py:12 in forward"
    assert words("a print\n" + DUMP) == words(DUMP)


def test_what_cpp_threw_comes_first() -> None:
    thrown = "terminate called after throwing an instance of 'std::runtime_error'\n  what():  the driver is gone\n"
    assert words(thrown + DUMP) == f"what():  the driver is gone {words(DUMP)}"


def test_what_others_write_after_a_critical_line_does_not_hide_it() -> None:
    cause = CrashCause()
    cause.add("the engine has ended", critical=True)
    for number in range(MOST_AFTER):
        cause.add(f"{number} leaked")
    assert str(cause) == "the engine has ended"
    cause.add("another cause")
    assert str(cause) == "another cause"


def test_a_fault_without_a_stack() -> None:
    assert words("Fatal Python error: Segmentation fault\n") == "Fatal Python error: Segmentation fault"


@pytest.mark.parametrize("thread", [False, True])
def test_a_real_fault(thread: bool) -> None:
    call = "threading.Thread(target=crash).start(); threading.Event().wait()" if thread else "crash()"
    code = f"import ctypes, faulthandler, threading\nfaulthandler.enable()\ndef crash(): ctypes.string_at(0)\n{call}"
    ended = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    assert ended.returncode < 0
    assert words(ended.stderr).startswith("Fatal Python error: Segmentation fault at ")
    assert words(ended.stderr).endswith(" in string_at")
