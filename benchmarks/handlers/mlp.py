"""A perceptron of any width, and what it takes to measure a group: steps of a stream or of one call, and instants.

A request's body is `{"work": "mlp" | "meet" | "nothing", "steps": n, "stream": bool, "x": [width numbers]}`; the
answer has for each step the instants at which it began and ended on rank 0 and the seconds spent in collectives.
`{"work": "instants"}` asks when rank 0 began and ended the phases of its load.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from msx_core.mindspore.parallel import OP_TIMEOUT
from msx_core.mindspore.weights import Weights
from msx_sdk import Context
from msx_sdk.mindspore import Parallel, TensorParallelHandler, collectives

ENVIRONMENT = {"GLOG_v": "3", "OMP_NUM_THREADS": "1", OP_TIMEOUT: "3600"}
"""Variables that must be set before MindSpore is imported, and those that `init_parallel` would have set."""

Step = dict[str, float]


class MlpHandler(TensorParallelHandler):
    example = {"body": {"work": "mlp", "steps": 1, "stream": False, "x": None}}

    def initialize(self, context: Context) -> None:
        self.instants = {"process": psutil.Process().create_time(), "handler": time.time()}
        self.options: dict[str, Any] = context.model_yaml_config["mlp"]
        os.environ |= ENVIRONMENT
        import mindspore  # noqa: F401  # here, so that it can be told from the meeting of the ranks

        self.instants["imported"] = time.time()
        super().initialize(context)
        self.instants["loaded"] = time.time()

    def build(self, parallel: Parallel) -> Any:
        from mlp_net import Mlp  # type: ignore[import-not-found]  # it lies beside this file in the archive

        self.instants["met"] = time.time()
        return Mlp(self.options["width"], self.options["hidden"], self.options["blocks"], parallel)

    def load(self, cell: Any, context: Context) -> None:
        from msx_sdk.mindspore import load_shards

        with Weights(Path(self.options["weights"])) as weights:
            load_shards(cell, weights)

    def handle(self, data: list[dict[str, Any]], context: Context) -> Any:
        order = data[0]["body"]
        if order["work"] == "instants":
            return [self.instants]
        steps = self._steps(order["work"], self._input(order["x"]), order["steps"])
        return ([step] for step in steps) if order["stream"] else [[*steps]]

    def _input(self, x: list[float] | None) -> Any:
        import mindspore as ms

        return ms.Tensor(np.asarray([x or [0.5] * self.options["width"]], np.float32))

    def _steps(self, work: str, x: Any, count: int) -> Iterator[Step]:
        for _ in range(count):
            before, began = self.cell.collective_seconds, time.perf_counter()
            self._work(work, x)
            spent = self.cell.collective_seconds - before
            yield {"began": began, "ended": time.perf_counter(), "collectives": spent}

    def _work(self, work: str, x: Any) -> None:
        if work == "mlp":
            self._compute(x).asnumpy()
        elif work == "meet":  # the shortest wait for all others that there is
            collectives.all_reduce(x[:, :1], self.parallel.tp_group).asnumpy()
