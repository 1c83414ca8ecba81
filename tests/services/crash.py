"""Ends its process in the way that the body names: abort, exit, segfault or kill; else echoes."""

import ctypes
import os
import signal

WAYS = {
    "abort": os.abort,
    "exit": lambda: os._exit(3),
    "segfault": lambda: ctypes.string_at(0),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
}


def handle(data, context):
    for row in data:
        WAYS.get(text(row["body"]), lambda: None)()
    return [row["body"] for row in data]


def text(body):
    return body if isinstance(body, str) else body.decode()
