"""Leaves a child process and a thread behind at every call; answers with the child's pid."""

import subprocess
import threading

from msx_sdk import Handler


class Leak(Handler):
    def inference(self, inputs):
        child = subprocess.Popen(["sleep", "600"])
        threading.Thread(target=threading.Event().wait).start()
        return [str(child.pid) for _ in inputs]
