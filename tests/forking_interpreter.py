"""`python -m tests.forking_interpreter SOCKET_FD KIND`: an interpreter from which tests.forked forks."""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import importlib
import importlib.machinery
import io
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from types import ModuleType
from typing import NoReturn

from tests.forked import COMMAND, MODULES, NAME, REQUEST, ForkingPopen, places_of_modules, use_interpreter

_PATIENCE = 60.0
"""Seconds in which the process between a new one and its parent ends."""
_PR_SET_NAME = 15
_DESCRIPTORS = 1 << 20

_files = resource.getrlimit(resource.RLIMIT_NOFILE)
_of_worker: set[str] = set()
_path: list[str] = []
"""Where Python finds modules, without the current folder and PYTHONPATH."""
_IMPORTED = {
    "server": [
        "uvloop",
        "msx_frontend.assembly.grpc_server",
        "msx_frontend.assembly.lifecycle",
        "msx_frontend.cli.commands",
        "msx_frontend.cli.launch",
    ],
    "hub": ["httpx", "requests", "tqdm.auto", "yaml", "fsspec.asyn", "aiobotocore.session"],
}
"""Modules that are imported when they are needed; of a hub's library not those that read variables."""


def import_modules(kind: str) -> None:
    """Import a worker's modules first, and note them: a forked worker forgets all that come later."""
    inherited = places_of_modules(os.environ)
    _path[:] = [place for place in sys.path[1:] if place not in inherited]
    if kind == "server":
        import_modules("worker")
        _of_worker.update(sys.modules)
        from msx_frontend.cli.process_env import prepare_process

        prepare_process()
    for name in (*(name for name in MODULES if MODULES[name] == kind), *_IMPORTED.get(kind, [])):
        _module(name)


def _module(name: str) -> ModuleType:
    """Import the module that `python -m NAME` runs."""
    module = importlib.import_module(name)
    return importlib.import_module(f"{name}.__main__") if hasattr(module, "__path__") and name in MODULES else module


def serve(requests: socket.socket) -> NoReturn:
    """Fork a process for each request. The process between the two ends at once, which makes it the requester's."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the tests, which end their servers
    resource.setrlimit(resource.RLIMIT_NOFILE, (_files[1], _files[1]))
    _name(NAME)
    gc.freeze()
    while True:
        request, fds, _, _ = socket.recv_fds(requests, REQUEST, 253)
        if not request:
            os._exit(0)
        if between := os.fork():
            os.waitpid(between, 0)
            for fd in fds:
                os.close(fd)
        elif os.fork():
            os._exit(0)
        else:
            _run(requests, request, fds)


def _run(requests: socket.socket, request: bytes, fds: list[int]) -> NoReturn:
    name, *arguments, numbers, env, folder, start_new_session, parent = json.loads(request)
    _wait_for_parent(parent)
    if start_new_session:
        os.setsid()
    requests.send(str(os.getpid()).encode())
    requests.close()
    module = sys.modules["__main__"] = _module(name)
    sys.argv[:] = [module.__file__ or "", *arguments]
    _place(fds, [0, 1, 2, *numbers])
    _become(env, folder)
    if name == COMMAND:
        _fork_from_here()
    elif MODULES[name] == "worker":
        _forget_the_server()
    _leave(module)


def _wait_for_parent(parent: int) -> None:
    deadline = time.monotonic() + _PATIENCE
    while os.getppid() != parent:
        if time.monotonic() > deadline:
            os._exit(1)
        time.sleep(0.0002)


def _place(fds: Sequence[int], numbers: Sequence[int]) -> None:
    """Give descriptors the numbers that they have in the parent, which may be higher than a process usually has."""
    free = max(*fds, *numbers) + 1
    aside = [fcntl.fcntl(fd, fcntl.F_DUPFD, free) for fd in fds]
    for fd, number in zip(aside, numbers, strict=True):
        os.dup2(fd, number)
    for fd in {*aside, *fds} - {*numbers}:
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, _files)


def _become(env: dict[str, str], folder: str) -> None:
    _name(b"python")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unbuffered = "PYTHONUNBUFFERED" in env
    out = os.fdopen(1, "wb", 0 if unbuffered else -1, closefd=False)
    sys.stdout = io.TextIOWrapper(out, "utf-8", write_through=unbuffered)
    sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", 0, closefd=False), "utf-8", "backslashreplace", write_through=True)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.path[:] = [folder, *places_of_modules(env), *_path]


def _fork_from_here() -> None:
    """Let a copy of this process, before it becomes a server, fork the server's workers."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        _keep_only(theirs.fileno())
        serve(theirs)
    theirs.close()
    use_interpreter(ours)
    subprocess.Popen = ForkingPopen  # type: ignore[misc]


def _keep_only(own: int) -> None:
    """Nobody waits for the end of a pipe that this process has, too."""
    os.chdir("/")
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(nothing, fd)
    os.closerange(3, own)
    os.closerange(own + 1, _DESCRIPTORS)


def _forget_the_server() -> None:
    """A worker imports for itself what it needs. Packages with an extension module can be imported once only."""
    others = {name: module for name, module in sys.modules.items() if _of_worker and name not in _of_worker}
    kept = {name.partition(".")[0] for name, module in others.items() if _is_extension(module)}
    for name, module in others.items():
        if name != "__main__" and name.partition(".")[0] not in kept | sys.stdlib_module_names:
            del sys.modules[name]
            package, _, own = name.rpartition(".")
            if package in _of_worker and vars(sys.modules[package]).get(own) is module:
                delattr(sys.modules[package], own)


def _is_extension(module: ModuleType) -> bool:
    return (getattr(module, "__file__", None) or "").endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES))


def _leave(module: ModuleType) -> NoReturn:
    """Run the module's `main`, and end as an interpreter does, without taking all modules down."""
    status = 1
    try:
        module.main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(status)


def _name(name: bytes) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name, 0, 0, 0)


if __name__ == "__main__":
    # The copy of this module that requests find, by its name.
    from tests import forking_interpreter

    forking_interpreter.import_modules(sys.argv[2])
    forking_interpreter.serve(socket.socket(fileno=int(sys.argv[1])))
