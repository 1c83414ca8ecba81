"""Takes `loadSeconds` to load and `workSeconds` a request; answers with its process id."""

from __future__ import annotations

import os
import time
from typing import Any

from msx_sdk import Context, Handler


class Work(Handler):
    def initialize(self, context: Context) -> None:
        super().initialize(context)
        self.seconds = float(context.model_yaml_config["workSeconds"])
        time.sleep(float(context.model_yaml_config["loadSeconds"]))

    def inference(self, inputs: Any) -> list[dict[str, int]]:
        time.sleep(self.seconds)
        return [{"pid": os.getpid()} for _ in inputs]
