"""Maltreats its stdout: `close` closes it, `child` leaves a process behind that holds it open."""

import os
import subprocess

from msx_sdk import Handler


class CloseStdout(Handler):
    def inference(self, inputs):
        if text(inputs[0]["body"]) == "close":
            os.close(1)
            return ["closed" for _ in inputs]
        child = subprocess.Popen(["sleep", "600"])
        return [str(child.pid) for _ in inputs]


def text(body):
    return body if isinstance(body, str) else body.decode()
