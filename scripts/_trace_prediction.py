"""Prints the calls of one warm prediction in the server's process, and compares their number with limits.

The server runs in this process, and a thread is its client. Functions of the packages of this checkout count; those of
the worker, which is a process of its own, and of other packages do not. Printed are the calls that most of the traced
predictions make; others meet a timer.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from http.client import HTTPConnection
from inspect import CO_COROUTINE
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple
from urllib.parse import urlsplit

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from msx_frontend.cli.main import main as msx_serve

MOST_FILES, MOST_CHANGES, MOST_CALLS = 30, 50, 81
WARM_UP, TRACED = 50, 100
PAUSE = 0.003
"""Seconds between two predictions, for what follows a reply, and between head and body, as many clients send them."""
START_LIMIT = 60.0
LOG_END = 4000
"""Characters of the server's log that a failure shows."""
ROOT = Path(__file__).parents[1]
PACKAGES = tuple(f"{ROOT / name}{os.sep}" for name in ("sdk", "archiver", "backend", "frontend", "compat"))
HANDLER = "def handle(data, context):\n    return [row['body'] for row in data]\n"
CONFIG = "minWorkers: 1\nmaxWorkers: 1\n"
PROPERTIES = """\
model_store={store}
inference_address=http://127.0.0.1:0
management_address=http://127.0.0.1:0
metrics_address=http://127.0.0.1:0
grpc_inference_port=0
grpc_management_port=0
disable_token_authorization=true
supervisor=false
"""
BODY = b'"' + b"x" * 126 + b'"'
HEAD = (
    b"POST /predictions/echo HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: identity\r\nUser-Agent: trace\r\n"
    b"Content-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n" % len(BODY)
)


class Call(NamedTuple):
    depth: int
    """How many of our own functions call it, one the other."""
    file: str
    function: str


class Recorder:
    """The profile function of the server's thread."""

    def __init__(self) -> None:
        self.traces: list[list[Call]] = []
        self.on = False
        self._names: dict[CodeType, tuple[str, str] | None] = {}

    def begin(self) -> None:
        self.traces.append([])
        self.on = True

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if self.on and event == "call" and (name := self._name(frame.f_code)) is not None:
            callers = list(_callers(frame))
            if not any(code.co_flags & CO_COROUTINE for code in callers):  # a prediction has no task: it is another's
                self.traces[-1].append(Call(sum(self._name(code) is not None for code in callers), *name))

    def _name(self, code: CodeType) -> tuple[str, str] | None:
        """None for what is not ours, and for comprehensions, which later Pythons do not call."""
        if code not in self._names:
            ours = code.co_filename.startswith(PACKAGES) and not code.co_name.startswith("<")
            name = getattr(code, "co_qualname", code.co_name)  # from Python 3.11 on
            self._names[code] = (os.path.relpath(code.co_filename, ROOT).partition(os.sep)[2], name) if ours else None
        return self._names[code]


def _callers(frame: FrameType) -> Iterator[CodeType]:
    outer = frame.f_back
    while outer is not None:
        yield outer.f_code
        outer = outer.f_back


class Client(threading.Thread):
    """Predicts one after the other as soon as the server is ready, and stops it."""

    def __init__(self, store: Path, recorder: Recorder) -> None:
        super().__init__()
        self._store, self._recorder = store, recorder
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            self._predict_all(self._address())
        except Exception as error:
            self.failure = error
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    def _address(self) -> tuple[str, int]:
        until = time.monotonic() + START_LIMIT
        while time.monotonic() < until:
            with contextlib.suppress(OSError, ValueError):
                url = urlsplit(json.loads((self._store / ".msx" / "server.json").read_text())["inference"])
                address = (url.hostname or "", url.port or 0)
                probe = HTTPConnection(*address)
                probe.request("GET", "/readyz")
                if probe.getresponse().status == HTTPStatus.OK:
                    return address
            time.sleep(0.05)
        raise TimeoutError(f"The server was not ready within {START_LIMIT:g} s.")

    def _predict_all(self, address: tuple[str, int]) -> None:
        with socket.create_connection(address) as connection:
            for number in range(WARM_UP + TRACED):
                time.sleep(PAUSE)
                if number >= WARM_UP:
                    self._recorder.begin()
                connection.sendall(HEAD)
                time.sleep(PAUSE)
                connection.sendall(BODY)
                reply = b""
                while not reply.endswith(BODY):
                    reply += connection.recv(1 << 16)
            time.sleep(PAUSE)
        self._recorder.on = False


def traced(folder: Path) -> list[list[Call]]:
    recorder = Recorder()
    store = new_store(folder)
    client = Client(store, recorder)
    client.start()
    with (folder / "server.log").open("w") as log, contextlib.redirect_stdout(log):
        sys.setprofile(recorder)
        with contextlib.suppress(SystemExit):
            msx_serve(["--foreground", "--ts-config", str(folder / "config.properties"), "--models", "echo.mar"])
        sys.setprofile(None)
    client.join()
    if client.failure is not None:
        raise RuntimeError((folder / "server.log").read_text()[-LOG_END:]) from client.failure
    return recorder.traces


def new_store(folder: Path) -> Path:
    handler, config, store = folder / "echo.py", folder / "model-config.yaml", folder / "store"
    handler.write_text(HANDLER)
    config.write_text(CONFIG)
    (folder / "config.properties").write_text(PROPERTIES.format(store=store))
    store.mkdir()
    pack(PackOptions(model_name="echo", handler=str(handler), config_file=str(config), export_path=store))
    return store


def report(calls: Sequence[Call]) -> int:
    """Print the calls and their figures; returns 1 where a figure is over its limit."""
    least, known = min(call.depth for call in calls), set[str]()
    for number, call in enumerate(calls, 1):
        new = "" if call.file in known else "*"
        known.add(call.file)
        print(f"{number:3}{new:1} {'  ' * (call.depth - least)}{call.file}:{call.function}")
    changes = sum(one.file != other.file for one, other in pairwise(calls))
    figures = (("files", len(known), MOST_FILES), ("changes", changes, MOST_CHANGES), ("calls", len(calls), MOST_CALLS))
    print(", ".join(f"{found} {name} (at most {most})" for name, found, most in figures))
    return int(any(found > most for _, found, most in figures))


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="msx-trace-") as folder:
        os.environ.update(TMPDIR=folder, XDG_STATE_HOME=folder, XDG_CACHE_HOME=folder, LOG_LOCATION=folder)
        traces = Counter(map(tuple, traced(Path(folder))))
    ((usual, times),) = traces.most_common(1)
    print(f"{times} of {TRACED} predictions made these calls (* the file is new):")
    return report(usual)


if __name__ == "__main__":
    sys.exit(main())
