"""A handler as TorchServe's users write it, on a torch that only looks as if it computed on GPUs.

A request `info` is answered by what the handler sees, `oom` runs out of memory, and `assert` breaks the process's
context for good, as an assertion in a kernel does. Any other request is echoed.
"""

import json
import os
import sys
from types import SimpleNamespace

VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "CUDA_VISIBLE_DEVICES")


class AcceleratorError(RuntimeError):
    pass


class Cuda:
    broken = False

    def is_available(self):
        return True

    is_initialized = is_available

    def device_count(self):
        return len([one for one in os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",") if one])

    def current_device(self):
        return 0

    def memory_reserved(self, device):
        return 0

    def synchronize(self, device=None):
        if self.broken:
            raise AcceleratorError("CUDA error: device-side assert triggered\nFor debugging consider …\n")


torch = sys.modules["torch"] = SimpleNamespace(
    cuda=Cuda(), __version__="2.11.0", version=SimpleNamespace(cuda="13.0"), Tensor=type("Tensor", (), {})
)


class Handler:
    def initialize(self, context):
        gpu_id = context.system_properties.get("gpu_id")
        self.device = f"cuda:{gpu_id}" if torch.cuda.is_available() and gpu_id is not None else "cpu"
        seen = {name: os.environ[name] for name in VARIABLES if name in os.environ}
        self.info = {"gpu_id": gpu_id, "device": self.device, "env": seen}
        if folder := context.model_yaml_config.get("folder"):
            with open(os.path.join(folder, str(context.rank)), "w") as file:
                json.dump(self.info, file)

    def handle(self, data, context):
        bodies = [bytes(row.get("body", b"")) for row in data]
        if b"oom" in bodies:
            raise AcceleratorError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        if b"assert" in bodies:
            torch.cuda.broken = True
        torch.cuda.synchronize()
        return [self.info if body == b"info" else body for body in bodies]
