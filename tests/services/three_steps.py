"""Says which threads its steps run on."""

from __future__ import annotations

import threading
import time
from typing import Any

from msx_sdk import Handler


class ThreeSteps(Handler):
    def preprocess(self, data: Any) -> Any:
        self._work()
        return [[item["body"], self.context.get_request_id(idx), _thread()] for idx, item in enumerate(data)]

    def inference(self, inputs: Any) -> Any:
        time.sleep(0.001)  # as a device computes: the interpreter is free
        return [[*item, _thread()] for item in inputs]

    def postprocess(self, outputs: Any) -> Any:
        self._work()
        return [[*item, _thread(), self.context.get_request_id(idx)] for idx, item in enumerate(outputs)]

    def _work(self) -> None:
        until = time.thread_time() + 0.0005
        while time.thread_time() < until:
            pass


def _thread() -> str:
    return threading.current_thread().name
