"""Nodes of workflows, models and functions alike: each answers its name around its inputs, or does what it is told.

`NODE:COMMAND` or `NODE:COMMAND=VALUE` anywhere in the input tells the node of this name what to do.
"""

import json
import re
import time
from pathlib import Path

from msx_sdk import PredictionError

_TOLD = re.compile(r"""(\w+):(\w+)(?:=([^\s()|;"]+))?""")
_calls = 0


def handle(data, context):
    return [_answer(row, context, index) for index, row in enumerate(data or [])]


pre = post = other = handle


def _answer(row, context, index):
    node = context.model_name.partition("__")[2]
    text = "|".join(f"{name}={_text(row[name])}" for name in sorted(row))
    for name, command, value in _TOLD.findall(text):
        if name == node:
            answer = globals()[f"_{command}"](value, context, index)
            if answer is not None:
                return answer
    return f"{node}({text})"


def _text(value):
    return bytes(value).decode() if isinstance(value, (bytes, bytearray)) else json.dumps(value)


def _raise(value, context, index):
    raise RuntimeError(f"attempt of {context.get_request_id(index)}")


def _refuse(value, context, index):
    raise PredictionError(int(value), "a sentence of the handler")


def _flaky(value, context, index):
    """Fails the first `value` calls."""
    global _calls
    _calls += 1
    if _calls <= int(value):
        raise RuntimeError("not yet")
    _calls = 0


def _status(value, context, index):
    context.set_response_status(int(value), "As told", idx=index)
    context.set_response_content_type(index, "text/plain")
    return "a body of the handler"


def _json(value, context, index):
    return {"answer": 42}


def _typed(value, context, index):
    context.set_response_content_type(index, value)


def _big(value, context, index):
    return "x" * int(value)


def _pieces(value, context, index):
    """Send the pieces of a batch of one."""
    context.send(["one "])
    context.send(["two "])
    return "three"


def _headers(value, context, index):
    headers = context.get_all_request_header(index)
    return json.dumps({"id": context.get_request_id(index), **{key.lower(): headers[key] for key in headers}})


def _pid(value, context, index):
    import os

    return str(os.getpid())


def _meet(folder, context, index):
    """Answers when both m1 and m2 are here: they can only be if they run side by side."""
    Path(folder, f"{context.model_name}.here").touch()
    _wait(lambda: len(list(Path(folder).glob("*.here"))) == 2)


def _wait_for(file, context, index):
    Path(f"{file}.waiting").touch()
    _wait(lambda: Path(file).exists())


def _hang(folder, context, index):
    """Until no client waits for the answer any more. Each attempt leaves a file."""
    Path(folder, f"{context.get_request_id(index)}.running").touch()
    _wait(lambda: context.cancelled(index))
    Path(folder, f"{context.get_request_id(index)}.cancelled").touch()


def _wait(condition):
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    raise RuntimeError("waited in vain")
