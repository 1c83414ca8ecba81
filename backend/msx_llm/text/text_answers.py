"""The side of the process that tokenizes very long texts: reads calls from a socket, and writes the answers."""

import contextlib
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from msx_core.generation.wire import decode
from msx_core.orphan import die_with_parent
from msx_llm.text.text_calls import (
    HEAD,
    TextAnswer,
    TextCall,
    TextDone,
    TextFailed,
    TextFiles,
    TextRefused,
    length_in,
    packed,
    sendable,
)
from msx_sdk.errors import PredictionError

NICENESS = 10
"""Added to the worker's: a tenth of its share of a processor that both want."""


def serve(files: Any) -> None:
    """The main function of such a process. Standard input is the socket; the arguments are the parent's process and the
    most bytes of a message; `files` is the union of the `TextFiles` that the first message may be."""
    parent, most = map(int, sys.argv[1:])
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    with contextlib.suppress(OSError):  # not everywhere: when memory is short, the kernel is to end this process first
        Path("/proc/self/oom_score_adj").write_text("1000")
    connection = socket.socket(fileno=0)
    with connection, connection.makefile("rb") as calls:
        first: TextFiles[Any] = decode(message(calls, most), files)
        texts = first.load()
        while data := message(calls, most):
            connection.sendall(answer(texts, decode(data, first.calls), most))


def answer(texts: object, call: TextCall[Any, Any], most: int) -> bytes:
    """The value, or what was raised; that it is too large, too."""
    try:
        return packed(answered(texts, call), most)
    except PredictionError as error:
        return packed(TextRefused.of(error), most)


def answered(texts: object, call: TextCall[Any, Any]) -> TextAnswer:
    try:
        return TextDone(value=msgspec.Raw(msgspec.msgpack.encode(call.answer(texts))))
    except PredictionError as error:
        return TextRefused.of(error)
    except Exception as error:
        return TextFailed(message=sendable(f"{type(error).__name__}: {error}"))


def message(calls: BinaryIO, most: int) -> bytes:
    """b"" if there is none."""
    return calls.read(length_in(calls.read(HEAD), most))
