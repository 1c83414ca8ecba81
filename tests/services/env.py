"""Tells where it runs: process, cores, rank, device, working folder and the variables that a launcher sets."""

import os

from msx_sdk import Handler

PREFIXES = ("ASCEND_", "CUDA_", "DEVICE_", "FAKE_", "LOCAL_", "MASTER_", "MS_", "RANK", "WORLD_", "TS_")


class Env(Handler):
    def inference(self, inputs):
        context = self.context
        answer = {
            "pid": os.getpid(),
            "rank": context.rank,
            "world_size": context.world_size,
            "device_id": context.device_id,
            "cwd": os.getcwd(),
            "cores": sorted(os.sched_getaffinity(0)),
            "files": sorted(os.listdir()),
            "environ": {name: value for name, value in os.environ.items() if name.startswith(PREFIXES)},
        }
        return [answer for _ in inputs]
