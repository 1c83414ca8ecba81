"""Why a process ended, from what it wrote to stderr."""

import re

FATAL = "Fatal Python error: "
MOST_AFTER = 32
"""Lines after a critical one that do not hide it: what a process starts writes to the same stream, and ends later."""
_INNERMOST = re.compile(r"\s*File \"(?P<file>[^\"]*)\", line (?P<line>\d+) in (?P<name>.*)")


class CrashCause:
    """The last line that is not empty, or a critical one shortly before it. After a fault: Python's name for it, that
    of C++, and the place.

    `faulthandler` ends with the stacks of all threads and the list of all extension modules, which are many.
    """

    def __init__(self) -> None:
        self._line = self._what = self._fatal = self._place = self._critical = ""
        self._in_current_thread, self._after = False, 0

    def add(self, line: str, *, critical: bool = False) -> None:
        line, self._after = line.strip(), self._after + 1
        if critical or self._after > MOST_AFTER:
            self._critical, self._after = line if critical else "", 0
        if line.startswith(FATAL):
            self._what = self._line if self._line.startswith("what():") else ""
            self._fatal = line
        elif line.startswith(("Current thread ", "Thread ")):
            self._in_current_thread = line.startswith("Current ")
        elif self._in_current_thread and not self._place and (frame := _INNERMOST.fullmatch(line)):
            self._place = f"{frame['file']}:{frame['line']} in {frame['name']}"
        self._line = line or self._line

    def __str__(self) -> str:
        if not self._fatal:
            return self._critical or self._line
        fault = f"{self._fatal} at {self._place}" if self._place else self._fatal
        return f"{self._what} {fault}" if self._what else fault
