"""A handler as TorchServe's users write it: token ids in, the scores of a text out. It notes the calls of its model."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from encoder_net import encoder  # type: ignore[import-not-found]  # it lies beside this file in the archive
from measured_calls import MeasuredNetwork  # type: ignore[import-not-found]
from ts.torch_handler.base_handler import BaseHandler  # type: ignore[import-untyped]


class MeasuredEncoder(BaseHandler):  # type: ignore[misc]
    overlap = True

    def initialize(self, context: Any) -> None:
        self.context = context
        gpu = context.system_properties.get("gpu_id")
        found = gpu is not None and torch.cuda.is_available()
        self.map_location = "cuda" if found else "cpu"
        self.device = torch.device(f"cuda:{gpu}" if found else "cpu")
        self.model = MeasuredNetwork(encoder(**context.model_yaml_config["encoder"], device=self.device))
        self.initialized = True

    def preprocess(self, data: list[dict[str, Any]]) -> Any:
        """Token ids as int32, in one array a batch."""
        tokens = np.frombuffer(b"".join(bytes(row["body"]) for row in data), np.int32)
        return super().preprocess(tokens.reshape(len(data), -1).copy())

    def describe_handle(self) -> Any:
        """Figures beside a loop that copies a batch in, computes, and copies the result back."""
        self.model.batch = self.model.batch.cpu()
        with torch.inference_mode():
            return self.model.figures(lambda tokens: self.model.network(tokens.to(self.device)).cpu().numpy())
