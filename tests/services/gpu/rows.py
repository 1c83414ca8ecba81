"""A handler as TorchServe's users write it: rows of numbers in; the model's output, and where it was computed, out."""

import os

import torch
from ts.torch_handler.base_handler import BaseHandler


class Rows(BaseHandler):
    def initialize(self, context):
        super().initialize(context)
        gpu_id = context.system_properties.get("gpu_id")
        device = torch.device("cuda:" + str(gpu_id) if torch.cuda.is_available() and gpu_id is not None else "cpu")
        self.held = torch.zeros(context.model_yaml_config["handler"]["megabytes"], 1 << 18, device=device)
        self.place = {
            "pid": os.getpid(),
            "gpu_id": gpu_id,
            "visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
            "gpus": torch.cuda.device_count(),
        }

    def preprocess(self, data):
        return super().preprocess([row["body"]["row"] for row in data])

    def postprocess(self, data):
        return [{**self.place, "device": str(data.device), "output": row} for row in data.tolist()]
