"""The process that reads NVML for a server (`process.py`): answers calls on its standard input, which is a socket.

It ends when the socket does, also while a call hangs in the driver, so that no server leaves one behind.
"""

import contextlib
import os
import queue
import socket
import threading

import msgspec
import pynvml

from msx_frontend.devices.nvidia.messages import NvmlAnswer, NvmlCall
from msx_frontend.devices.nvidia.reading import NvmlReader

_MOST_CALL = 1024
"""Bytes of a call at most."""


def main() -> None:
    calls: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    with socket.socket(fileno=0) as server:
        threading.Thread(target=_receive, args=(server, calls), daemon=True).start()
        reader = NvmlReader()
        with contextlib.suppress(BrokenPipeError):
            while True:
                answer = _answer(reader, msgspec.json.decode(calls.get(), type=NvmlCall))
                server.sendall(msgspec.json.encode(answer) + b"\n")


def _receive(server: socket.socket, calls: queue.SimpleQueue[bytes]) -> None:
    lines = server.makefile("rb")
    try:
        while line := lines.readline(_MOST_CALL):
            calls.put(line)
    finally:  # also where the socket was closed with an answer unread, which resets it
        os._exit(0)


def _answer(reader: NvmlReader, call: NvmlCall) -> NvmlAnswer:
    readings = {"inventory": reader.inventory, "figures": reader.figures, "links": reader.links}
    try:
        return NvmlAnswer(readings[call.call]())
    except pynvml.NVMLError as error:
        return NvmlAnswer(code=error.value, message=str(error))
