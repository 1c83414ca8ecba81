"""The workers of a server: children of the supervisor, whichever frontend has asked for them."""

import contextlib
import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msx_frontend.supervision.descriptors import check_room
from msx_frontend.supervision.process import ChildProcess
from msx_frontend.supervision.session import end_sessions, is_stopped
from msx_frontend.supervision.spawn import spawn
from msx_frontend.supervision.wire import Message, close_all

LINE = "--line-fd"
"""Option of a worker: the socket on which it gets new sockets to another frontend."""


class Child:
    """A worker."""

    def __init__(
        self,
        process: ChildProcess,
        note: Message,
        work_dir: str,
        line: socket.socket,
        outputs: Sequence[int],
        holder: object | None = None,
        *,
        old: bool = False,
    ) -> None:
        """`note` is what its frontend remembers of it; `outputs` are the ends to read of stdout and stderr. `holder`:
        the frontend that has its sockets; None while it waits for one. `old`: it is to be replaced by another one, as
        `msx-serve upgrade --workers` has ordered."""
        self.process, self.note, self.work_dir, self.line = process, note, work_dir, line
        self.outputs, self.holder, self.old = outputs, holder, old

    @property
    def lasts(self) -> bool:
        """Another frontend may take it over. Its own one may have ended when it had stopped it, and not yet killed."""
        return bool(self.note) and self.note.get("lasts", True) and not is_stopped(self.process.pid)

    def adopt(self, ends: Sequence[int]) -> None:
        """Send the worker its new sockets. Raises OSError when it has ended."""
        socket.send_fds(self.line, [b"\n"], ends)

    def reap(self) -> int:
        """Returns its exit code."""
        code = self.process.wait()
        self.line.close()
        close_all(self.outputs)
        self.outputs = ()
        return code


class Children:
    """All workers, by pid."""

    def __init__(self) -> None:
        self._children: dict[int, Child] = {}

    def start(self, message: Message, descriptors: list[int], holder: object) -> int:
        """The last four descriptors are stdout and stderr, the worker's ends first; those before them are inherited,
        each by the option that `options` names. Returns the pid. Raises OSError.
        """
        *inherited, stdout, stderr, read_stdout, read_stderr = descriptors
        line, end = socket.socketpair()
        try:
            with end:
                check_room(descriptors)
                options = [*zip(message["options"], inherited, strict=True), (LINE, end.fileno())]
                process = spawn(message["command"], options, stdout, stderr, message["env"], message["work_dir"])
        except BaseException:
            line.close()
            close_all(descriptors)
            raise
        close_all([*inherited, stdout, stderr])
        outputs = [read_stdout, read_stderr]
        self.put(Child(process, message["note"], message["work_dir"], line, outputs, holder))
        return process.pid

    def __iter__(self) -> Iterator[Child]:
        """Iterate in the order of their starts."""
        return iter(self._children.values())

    def put(self, child: Child) -> None:
        """One that the program before this one has started."""
        self._children[child.process.pid] = child

    def __getitem__(self, pid: int) -> Child:
        """Raises OSError for a process that is no child any more."""
        if pid not in self._children:
            raise ProcessLookupError(f"process {pid} is no worker of this server")
        return self._children[pid]

    def reap(self, pid: int) -> int:
        """Forget a worker that has ended. Raises OSError."""
        child = self[pid]
        del self._children[pid]
        return child.reap()

    def notes(self, leaving: object | None, *, old: bool = False) -> list[dict[str, Any]]:
        """Workers for the next frontend, in the order of their starts. Those that a frontend which is `leaving` has are
        `held`; those that are to be replaced are `old`, all of them or some."""
        return [
            {"pid": pid, "held": child.holder is not None, "old": old or child.old, **child.note}
            for pid, child in self._children.items()
            if child.note and (child.holder is None or child.holder is leaving)
        ]

    def age(self, pids: Iterable[int]) -> None:
        """These are to be replaced, also if a frontend ends before it has done so."""
        for pid in pids:
            if (child := self._children.get(pid)) is not None:
                child.old = True

    @property
    def work_dirs(self) -> list[str]:
        return [child.work_dir for child in self._children.values()]

    def release(self, pids: Sequence[int]) -> None:
        """Let workers that go on wait for another frontend. Those that have ended are ignored."""
        for pid in pids:
            if (child := self._children.get(pid)) is not None:
                child.holder = None

    def frontend_ended(self, holder: object) -> None:
        """Let its workers that `last` wait for the next one, and end the others."""
        mine = [pid for pid, child in self._children.items() if child.holder is holder]
        self._end([pid for pid in mine if not self._children[pid].lasts])
        self.release(mine)

    def end_waiting(self) -> int:
        """End those that no frontend has taken over. Returns how many there were."""
        return self._end([pid for pid, child in self._children.items() if child.holder is None])

    def end_all(self) -> int:
        """Also removes the folder of their working folders, where nothing else is in it."""
        folders = {os.path.dirname(child.work_dir) for child in self}
        ended = self._end([*self._children])
        for folder in folders:
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        return ended

    def _end(self, pids: Sequence[int]) -> int:
        import shutil  # with all that compresses: not at the start

        ending = [self._children.pop(pid) for pid in pids]
        end_sessions(*(child.process.pid for child in ending if child.process.returncode is None))
        for child in ending:
            child.reap()
            shutil.rmtree(child.work_dir, ignore_errors=True)
        return len(ending)
