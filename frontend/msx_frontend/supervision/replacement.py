"""The supervisor becomes another program by execve(2): its number, its children and its descriptors stay."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence

from msx_core.module_command import module_command
from msx_frontend.supervision.wire import Message

MODULE = "msx_frontend.supervision"
PROGRAM = f"{MODULE}.__main__"


class Passed:
    """State that the program before this one has left. `answer` is for the command that waits at `waiting`."""

    def __init__(self, fd: int) -> None:
        """Raises OSError, and ValueError or KeyError for what is no state."""
        self._fd = fd
        os.lseek(fd, 0, os.SEEK_SET)
        with open(fd, "rb", closefd=False) as file:
            content = json.load(file)
        self.state: Message = content["state"]
        self.waiting: int | None = content["waiting"]
        self.answer: Message = content["answer"]
        self._descriptors: list[int] = content["descriptors"]

    def taken(self) -> None:
        """No child inherits its descriptors from now on, and there is no way back."""
        for fd in self._descriptors:
            os.set_inheritable(fd, False)
        os.close(self._fd)


class Replacement:
    def __init__(self, arguments: Sequence[str]) -> None:
        """`arguments` are those of this module, without the options that are added here."""
        self._arguments = arguments

    def become(
        self, python: str, state: Message, descriptors: Iterable[int], waiting: int | None, answer: Message
    ) -> OSError:
        """Does not return where it succeeds. The caller has blocked the signals: the next program gets them."""
        kept = [*descriptors, *([] if waiting is None else [waiting])]
        content = {"state": state, "waiting": waiting, "answer": answer, "descriptors": kept}
        with open(os.memfd_create("msx-supervisor", 0), "w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            _let_inherit(kept, True)
            try:
                return self._run(python, f"--state={file.fileno()}", f"--before={sys.executable}")
            finally:
                _let_inherit(kept, False)

    def go_back(self, python: str, fd: int, reason: str) -> OSError:
        """Become the program before this one again. All descriptors are as it has left them."""
        return self._run(python, f"--state={fd}", f"--refused={reason}")

    def _run(self, python: str, *options: str) -> OSError:
        command = [*module_command(python, MODULE), *options, *self._arguments]
        try:
            os.execv(python, command)  # noqa: S606 - a list of arguments
        except OSError as error:
            return error


def _let_inherit(descriptors: Iterable[int], inherited: bool) -> None:
    for fd in descriptors:
        os.set_inheritable(fd, inherited)
