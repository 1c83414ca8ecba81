"""Streams "1", then waits until its client has left, then goes on; notes in the file named by the body what it does."""

import time


def handle(data, context):
    path = bytes(data[0]["body"]).decode()
    try:
        yield ["1"]
        while not context.cancelled(0):
            time.sleep(0.005)
        note(path, "sees it")
        yield ["2"]
        note(path, "goes on")
        yield ["3"]
    finally:
        note(path, "closed")


def note(path, line):
    with open(path, "a") as file:
        file.write(f"{line}\n")
