"""Processes of Python that are forked from an interpreter which has imported what they import.

An interpreter of its own spends 0.3 s of the processor on the imports of a worker, and half a second on those of a
server, each anew. From `main` on all is as in a process of its own: its parent is the process that started it, and a
worker knows nothing of the server. /proc, however, shows command line and environment of the interpreter: tests of
these, and of how processes are started, start them as users do. A server that is forked forks its workers.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msx_core.module_command import module_command

ROOT = Path(__file__).parents[1]
WORKER, COMMAND = "msx_backend.worker", "msx_frontend.cli.main"
MODULES = {
    WORKER: "worker",
    "tests.frontend.workers.segment_worker": "worker",
    COMMAND: "server",
    "msx_frontend.archives.hub.process": "hub",
    "msx_frontend.archives.hub.one_file": "hub",
    "msx_llm.sizing": "sizing",
}
"""Modules whose `main` is forked, and from which interpreter; that of servers has the modules of workers, too."""
MORE = {"hub": {"PYTHONWARNINGS": "ignore"}}
"""Variables that its processes are started with."""
REQUEST = 1 << 17
"""Bytes of a command and its environment at most."""
NAME = b"forks"
"""Name of the process that forks."""

_READ_EARLY = ("PYTHON", "LD_", "MALLOC", "GRPC_", "COVERAGE", "TZ", "LC_", "LANG", "MSX_TRACING")
"""Beginnings of variables that an interpreter or a module reads once, before the fork."""
_READ_LATER = {"PYTHONPATH", "PYTHONUNBUFFERED"}
"""Exceptions: a forked process follows these variables, too."""
_LIBRARIES = "LD_LIBRARY_PATH"
_SET_BY_SERVER = {"GRPC_ENABLE_FORK_SUPPORT": "0", "GRPC_VERBOSITY": "ERROR"}
_STARTS = ("sitecustomize.py", "usercustomize.py")
"""Modules that an interpreter imports before all else, where it finds them."""
_PR_SET_CHILD_SUBREAPER = 36

_environment = dict(os.environ)
_turn = threading.Lock()
_interpreters: dict[str, socket.socket] = {}


_popen = subprocess.Popen


class ForkingPopen(subprocess.Popen[Any]):
    """Start a process as subprocess.Popen does, by a fork where that is the same."""

    def _execute_child(
        self,
        args: Any,
        executable: Any,
        preexec_fn: Any,
        close_fds: bool,
        pass_fds: Sequence[int],
        cwd: Any,
        env: Mapping[str, str] | None,
        startupinfo: Any,
        creationflags: int,
        shell: bool,
        *more: Any,
    ) -> None:
        """A method of Popen since Python 3.3: pipes are there, and what it starts is waited for by `pid`."""
        environment, start_new_session = dict(os.environ if env is None else env), more[11]
        args = _as_module([*args])
        if preexec_fn is None and not shell and _can_fork(args, environment):
            stdin, _, _, stdout, _, stderr = more[:6]
            streams = [own if fd == -1 else fd for own, fd in enumerate((stdin, stdout, stderr))]
            request = [*args[2:], [*pass_fds], environment, os.fspath(cwd or os.getcwd()), start_new_session]
            if pid := _fork(args[2], json.dumps([*request, os.getpid()]).encode(), [*streams, *pass_fds]):
                self.pid, self._child_created = pid, True
                self._close_pipe_fds(*more[:6])  # type: ignore[attr-defined]
                return
        super()._execute_child(  # type: ignore[misc]
            args,
            executable,
            preexec_fn,
            close_fds,
            pass_fds,
            cwd,
            env,
            startupinfo,
            creationflags,
            shell,
            *more,
        )


def run_forked(
    command: list[str], timeout: float = 120.0, input: str | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Do as subprocess.run does, and take output and errors as text."""
    stdin, pipe = None if input is None else subprocess.PIPE, subprocess.PIPE
    with ForkingPopen(command, text=True, stdin=stdin, stdout=pipe, stderr=pipe, **options) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def use_interpreter(requests: socket.socket) -> None:
    """Fork servers and workers from the interpreter at the other end."""
    _interpreters.update(worker=requests, server=requests)


def _as_module(args: list[Any]) -> list[Any]:
    """A helper's command by `-m`: what is forked has no working folder in its path."""
    helpers = (name for name in MODULES if MODULES[name] in ("hub", "sizing"))
    written = next((module_command(sys.executable, name) for name in helpers if name in args), None)
    return [sys.executable, "-m", *args[3:]] if written is not None and args[:4] == written else args


def _can_fork(args: list[Any], env: Mapping[str, str]) -> bool:
    """Not with another Python, confined, with variables that are read before the fork, or while coverage counts."""
    return (
        args[:2] == [sys.executable, "-m"]
        and args[2] in MODULES
        and _read_early(env) == _read_early(_environment_of(MODULES[args[2]]))
        and "COVERAGE_PROCESS_CONFIG" not in os.environ
        and not any(Path(place, name).exists() for place in places_of_modules(env) for name in _STARTS)
    )


def _read_early(env: Mapping[str, str]) -> dict[str, str]:
    known = {**_SET_BY_SERVER, **env, _LIBRARIES: _without_mindspore(env.get(_LIBRARIES, ""))}
    return {name: known[name] for name in known if name.startswith(_READ_EARLY) and name not in _READ_LATER}


def _without_mindspore(places: str) -> str:
    """MindSpore adds its own folder to the variable of the process that imports it."""
    return os.pathsep.join(place for place in places.split(os.pathsep) if "/mindspore/lib/" not in place)


def _environment_of(kind: str) -> dict[str, str]:
    return {**_environment, **MORE.get(kind, {})}


def places_of_modules(env: Mapping[str, str]) -> list[str]:
    return [*filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]


def _fork(module: str, request: bytes, fds: list[int]) -> int:
    """The number of the new process, or 0 without one. For as long as it takes, this process takes over what loses its
    parent; so the new process, which another one forks, becomes a child of this one."""
    libc = ctypes.CDLL(None)
    with _turn:
        requests = forking_interpreter(MODULES[module])
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            socket.send_fds(requests, [request], fds)
            return int(requests.recv(32) or 0)
        except OSError:  # the interpreter was killed, with all that its server has started
            return 0
        finally:
            libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def forking_interpreter(kind: str) -> socket.socket:
    """Socket of the interpreter that forks, one of this process; it ends when the socket is closed."""
    if kind not in _interpreters:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-m", "tests.forking_interpreter", str(theirs.fileno()), kind]
            process = _popen(command, cwd=ROOT, pass_fds=[theirs.fileno()], env=_environment_of(kind))
        atexit.register(process.wait)
        atexit.register(ours.close)
        _interpreters[kind] = ours
    return _interpreters[kind]
