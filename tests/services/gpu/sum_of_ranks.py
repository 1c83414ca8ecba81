"""A handler for a group of ranks: sums a tensor over them, and says how long a large one takes."""

import os
import time

import torch
from torch import distributed

LARGE = 16 << 20
"""Numbers of the tensor that is timed: 64 MiB."""


class SumOfRanks:
    def initialize(self, context):
        self.rank = int(os.environ["LOCAL_RANK"])
        on_gpu = torch.cuda.is_available() and context.system_properties.get("gpu_id") is not None
        self.device = torch.device("cuda", self.rank) if on_gpu else torch.device("cpu")
        if on_gpu:
            torch.cuda.set_device(self.device)
        distributed.init_process_group("nccl" if on_gpu else "gloo")
        self.large = torch.ones(LARGE, device=self.device)
        self._sum(self.large)

    def handle(self, data, context):
        small = torch.full((1,), self.rank + 1.0, device=self.device)
        self._sum(small)
        began = time.perf_counter()
        self._sum(self.large)
        answer = {
            "sum": small.item(),
            "milliseconds": (time.perf_counter() - began) * 1000,
            "world": distributed.get_world_size(),
            "backend": distributed.get_backend(),
            "device": str(self.device),
            "visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
        }
        return [answer] * len(data)

    def _sum(self, tensor):
        distributed.all_reduce(tensor)
        if tensor.is_cuda:
            torch.cuda.synchronize(self.device)
